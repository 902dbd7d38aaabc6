package backup

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// The format of sha256sum: if a name would break its line, it is escaped and the
// line begins with a backslash.
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
		if got, ok := sums[name]; !ok {
			return fmt.Errorf("file %q is missing", name)
		} else if got != sum {
			return fmt.Errorf("file %q does not match its sum", name)
		}
		delete(sums, name)
	}
	for name := range sums {
		return fmt.Errorf("file %q has no sum", name)
	}
	return lines.Err()
}
