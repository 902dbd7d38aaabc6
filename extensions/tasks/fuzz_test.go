package tasks

import (
	"encoding/json"
	"strings"
	"testing"
)

// Any text after a command becomes arguments of its tool, or an error that
// explains the usage.
func FuzzCommands(f *testing.F) {
	for _, seed := range []string{
		"", "do it", "name=a model=m agent=x timeout=5s deliver=announce do it", `--name=a "quoted"`, "timeout=NaN x",
		"timeout=1e999 x", "timeout=-Inf x",
		"3 timeout=0x1p4", "count=1e300", "task-1 hello", "from=a,b --lifo timeout=2", "all", "\xff=\xfe", `""`, "=",
		"a b\tc\nd",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tool := range (&tasks{}).tools() {
			if tool.Parse == nil {
				continue
			}
			raw, err := tool.Parse(text)
			switch {
			case err == nil && !json.Valid(raw):
				t.Errorf("/%s %q makes %s", tool.Command, text, raw)
			case err != nil && (err.Error() == "" || strings.Contains(err.Error(), "json:") ||
				strings.Contains(err.Error(), "strconv")):
				t.Errorf("/%s %q is refused with %q", tool.Command, text, err)
			}
		}
	})
}
