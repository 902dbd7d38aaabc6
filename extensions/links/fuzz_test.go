package links

import "testing"

// FuzzSide: what a key of a session is read as makes the same key again.
func FuzzSide(f *testing.F) {
	for _, seed := range []string{"link:a:b", "link:a:b:s7", "link:a:b:", "link::", "link:", "task:a", "link:a:b:c:d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		s, ok := sideOf(key)
		if !ok {
			return
		}
		again, ok := sideOf(sessionKey(s.self, s.peer, s.within))
		if !ok || again != s {
			t.Errorf("%q is %+v, and that is %+v", key, s, again)
		}
	})
}
