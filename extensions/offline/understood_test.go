package offline

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var utterances = flag.String("utterances", "", "a file of lines utterance<TAB>expected: print what each does")

// TestUnderstood prints what the model does with each utterance of a file:
//
//	go test ./extensions/offline -run TestUnderstood -v -args -utterances /path/to/file
//
// A line is an utterance, a tab and the expectation, which is only printed. A dialog
// is several utterances separated by " || "; one that begins with "!" is a reminder
// that is delivered at this point. Each line begins in the same world, whose texts are
// Russian if the line is.
func TestUnderstood(t *testing.T) {
	t.Parallel()
	if *utterances == "" {
		t.Skip("no file of utterances: give -args -utterances FILE")
	}
	file, err := os.ReadFile(*utterances)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for n, line := range strings.Split(string(file), "\n") {
		said, expected, _ := strings.Cut(line, "\t")
		if strings.TrimSpace(said) == "" || strings.HasPrefix(said, "#") {
			continue
		}
		w := newWorld(t, said)
		fmt.Fprintf(&out, "\n%d. %s\n   expected: %s\n", n+1, said, expected)
		for text := range strings.SplitSeq(said, " || ") {
			if delivered, ok := strings.CutPrefix(text, "!"); ok {
				w.deliver(strings.TrimSpace(delivered))
				continue
			}
			answer := w.say(text)
			if strings.Contains(said, " || ") {
				fmt.Fprintf(&out, "   > %s\n", text)
			}
			for _, call := range w.did {
				fmt.Fprintf(&out, "   call: %s\n", call)
			}
			fmt.Fprintf(&out, "   answer: %s\n", strings.ReplaceAll(answer, "\n", "\n           "))
		}
	}
	fmt.Println(out.String())
}
