package backup

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// The sums of the files stand in lines as sha256sum writes and reads them: a name
// that would break its line is escaped, and its line begins with a backslash.
var (
	escapeName   = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)
	unescapeName = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")
)

func writeSum(w io.Writer, sum []byte, name string) {
	mark, escaped := "", escapeName.Replace(name)
	if escaped != name {
		mark = `\`
	}
	fmt.Fprintf(w, "%s%x  %s\n", mark, sum, escaped)
}

func compareSums(in io.Reader, sums map[string]string) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line, escaped := strings.CutPrefix(lines.Text(), `\`)
		sum, name, _ := strings.Cut(line, "  ")
		if escaped {
			name = unescapeName.Replace(name)
		}
		if got, there := sums[name]; !there {
			return fmt.Errorf("%q is missing in it", name)
		} else if got != sum {
			return fmt.Errorf("%q in it is not what was written", name)
		}
		delete(sums, name)
	}
	for name := range sums {
		return fmt.Errorf("%q in it has no sum", name)
	}
	return lines.Err()
}
