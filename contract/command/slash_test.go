package command

import "testing"

func TestWhatIsACommand(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text, name, rest string
	}{
		{"/stop", "stop", ""},
		{"  /agent   helper  ", "agent", "helper"},
		{"/note two\nlines", "note", "two\nlines"},
		{"/etc/passwd looks odd", "", ""},
		{"/", "", ""},
		{"/ stop", "", ""},
		{"//stop", "", ""},
		{"/2nd", "", ""},
		{"/Stop", "", ""},
		{"please /stop", "", ""},
		{"/stop!", "", ""},
		{"", "", ""},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			t.Parallel()
			name, rest, ok := Parse(test.text)
			if name != test.name || rest != test.rest || ok != (test.name != "") {
				t.Errorf("Parse(%q) = %q, %q, %v", test.text, name, rest, ok)
			}
		})
	}
}
