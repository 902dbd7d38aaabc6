package links

import "testing"

// FuzzSide checks that a parsed key formats as the same key.
func FuzzSide(f *testing.F) {
	for _, seed := range []string{"link:a:b", "link:a:b:s7", "link:a:b:", "link::", "link:", "task:a", "link:a:b:c:d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		s, ok := parseSide(key)
		if !ok {
			return
		}
		again, ok := parseSide(sessionKey(s.self, s.peer, s.within))
		if !ok || again != s {
			t.Errorf("%q is %+v, and that is %+v", key, s, again)
		}
	})
}
