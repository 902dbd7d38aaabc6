package near

import "testing"

func TestBest(t *testing.T) {
	t.Parallel()
	known := []string{"command", "args", "envFile", "read_only", "scheduler"}
	for got, want := range map[string]string{
		"comand": "command", "agrs": "args", "ENVFILE": "envFile", "read-only": "read_only", "sched": "scheduler",
		"nothing-like-it": "", "": "", "x": "",
	} {
		if best := Best(got, known); best != want {
			t.Errorf("%q is near %q, not %q", got, best, want)
		}
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"Köln", "Koln", 1}, {"kitten", "sitting", 3}} {
		if got := Distance(c.a, c.b); got != c.want || Distance(c.b, c.a) != c.want {
			t.Errorf("%q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
