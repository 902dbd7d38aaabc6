package tasks

import "testing"

func TestParseRunArgs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                      `{}`,
		"2":                     `{"count":2}`,
		"count=2":               `{"count":2}`,
		"--count=2":             `{"count":2}`,
		" 3  timeout=0.5 ":      `{"count":3,"timeout":0.5}`,
		"--timeout=60":          `{"timeout":60}`,
		"-1":                    `{"count":-1}`, // refused by the tool
		"2 3":                   "",
		"2 count=3":             "",
		"timeout=1 timeout=2":   "",
		"1.5":                   "",
		"many":                  "",
		"timeout=soon":          "",
		"2 name=a":              "",
		"count=":                "",
		"timeout":               "",
		"999999999999999999999": "",
	} {
		got, err := parseRunArgs(text)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("/run %s: %s, %v, want %s", text, got, err, want)
		}
	}
}
