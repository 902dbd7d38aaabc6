package terminal

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// chunked returns one part per Read.
type chunked []string

func (c *chunked) Read(p []byte) (int, error) {
	if len(*c) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*c)[0])
	*c = (*c)[1:]
	return n, nil
}

// A key that comes later than Esc is a key of its own.
func TestEscapeAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, typed := io.Pipe()
		go func() {
			for _, key := range []string{"a", "\x1b", "b", "\x1b", "\x1b", "c\x1b", "[D", "\x1bd", "\x1b"} {
				_, _ = io.WriteString(typed, key)
				time.Sleep(time.Second)
			}
			_ = typed.Close()
		}()
		got, err := io.ReadAll(newKeys(in))
		if err != nil || string(got) != "abc[D\x1bd" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	nl, tab := string(breakRune), string(tabRune)
	cases := map[string]struct {
		in   string
		want string
	}{
		"text":                  {"hello\r", "hello\r"},
		"cyrillic":              {"привет\r", "привет\r"},
		"arrow":                 {"a\x1b[Db", "a\x1b[Db"},
		"modified arrow":        {"\x1b[1;3D", "\x1b[1;3D"},
		"alt arrow":             {"\x1b\x1b[Dx", "\x1b\x1b[Dx"},
		"home":                  {"\x1bOH", "\x1bOH"},
		"alt letter":            {"\x1bб", "\x1bб"},
		"control J":             {"a\nb", "a" + nl + "b"},
		"alt enter":             {"a\x1b\rb", "a" + nl + "b"},
		"tab":                   {"a\tb", "a" + tab + "b"},
		"paste":                 {"\x1b[200~a\rb\r\nc\td\x1b[201~\r", "a" + nl + "b" + nl + "c" + tab + "d\r"},
		"paste with sequences":  {"\x1b[200~a\x1b[Ab\x03\x1b[201~", "a[Ab"},
		"control C in a paste":  {"\x1b[200~\x03\x04\x1b[201~x", "x"},
		"end of no paste":       {"a\x1b[201~b", "ab"},
		"sequence that is none": {"\x1b[\x03", "\x1b[\x03"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				bytewise := chunked(strings.Split(c.in, ""))
				var bytes chunked
				for i := range len(c.in) {
					bytes = append(bytes, c.in[i:i+1])
				}
				for _, in := range []*chunked{{c.in}, &bytewise, &bytes} {
					got, err := io.ReadAll(newKeys(in))
					if err != nil || string(got) != c.want {
						t.Errorf("got %q, %v, want %q", got, err, c.want)
					}
				}
			})
		})
	}
}

func TestKeysFoldsLargePastes(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x\n", foldAbove)
	k := newKeys(&chunked{"a \x1b[200~" + text[:900], text[900:] + "\x1b[201~ b"})
	got, err := io.ReadAll(k)
	if err != nil || len(got) > 60 {
		t.Fatalf("got %d bytes, %v", len(got), err)
	}
	if back := k.unfold(string(got)); back != "a "+text+" b" {
		t.Errorf("unfolds to %d bytes", len(back))
	}
}

func TestKeysAnswersForTheTerminal(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer func() { _ = w.Close() }()
	k := newKeys(r)
	k.answerCursorQuery()
	b := make([]byte, 16)
	n, err := k.Read(b)
	if err != nil || string(b[:n]) != "\x1b[1;1R" {
		t.Errorf("got %q, %v", b[:n], err)
	}
	k.stop()
	if _, err := k.Read(b); err != io.EOF { //nolint:errorlint // io.Reader's contract
		t.Errorf("got %v", err)
	}
}

func FuzzKeys(f *testing.F) {
	for _, s := range []string{"a\x1b[200~b\x1b[201~", "\x1b[1;1R", "\x1b\x1b\x1b[", "\xff\xfe", "\x1bO"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if len(in) > 4000 {
			t.Skip()
		}
		whole, err := io.ReadAll(newKeys(&chunked{in}))
		if err != nil {
			t.Fatal(err)
		}
		half, err := io.ReadAll(newKeys(&chunked{in[:len(in)/2], in[len(in)/2:]}))
		if err != nil {
			t.Fatal(err)
		}
		if string(whole) != string(half) {
			t.Fatalf("%q read at once is %q, in two parts %q", in, whole, half)
		}
	})
}
