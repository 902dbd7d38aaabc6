package output

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
)

// Whatever a process writes a secret into, it does not get to the log, nor into
// what is kept for the reason of its end.
func TestSecretsAreTakenOutOfWhatAProcessWrites(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := New([]string{"a"}, func(string) io.Writer { return &log })
	o.Conceal(slices.Values([]string{"123:AA/bb+cc", `quo"ted`, "no", ""}))
	o.Conceal(slices.Values([]string{"another-one"})) // of the next that shares the process
	for _, line := range []string{
		"calling https://x/bot123:AA/bb+cc/getMe: no", `{"@level":"error","@message":"failed","@module":"a","error":"key=123%3AAA%2Fbb%2Bcc quo\"ted"}`,
		"another-one, and no more", `panic: quo"ted`,
	} {
		o.Line("stderr", []byte(line+"\n"))
	}
	summary, full := o.Last()
	for _, secret := range []string{"AA/bb", "AA%2Fbb", `quo"ted`, `quo\"ted`, "another-one"} {
		if all := log.String() + summary + full; strings.Contains(all, secret) {
			t.Errorf("%s stands in %s", secret, all)
		}
	}
	if !strings.Contains(log.String(), "/bot"+redacted+"/getMe: no") || summary != "panic: "+redacted {
		t.Errorf("what is left is %s, %s", log.String(), summary)
	}
}
