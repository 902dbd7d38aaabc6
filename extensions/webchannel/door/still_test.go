package door_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

func TestStill(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	enter := func(name, value string) (v door.Visitor) {
		t.Helper()
		q := httptest.NewRequest(http.MethodGet, "http://"+host+"/", nil)
		q.Header.Set(name, value)
		r.door.Handler(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { v = door.From(q.Context()) })).
			ServeHTTP(httptest.NewRecorder(), q)
		return v
	}
	token := func(name string) door.Visitor {
		t.Helper()
		secret, err := r.door.CreateToken(t.Context(), name, "clara", []string{door.ScopeAll})
		if err != nil {
			t.Fatal(err)
		}
		return enter("Authorization", "Bearer "+secret)
	}
	login, first, second := enter("Cookie", r.login("clara")), token("a"), token("b")
	expect := func(when string, want ...bool) {
		t.Helper()
		for i, v := range []door.Visitor{login, first, second, {}} {
			if got := r.door.Still(t.Context(), v); got != want[i] {
				t.Errorf("%s, %+v may still come in: %v", when, v, got)
			}
		}
	}
	expect("at first", true, true, true, false)
	if err := r.door.RevokeToken(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	expect("without a token", true, false, true, false)
	if err := r.door.EndLogin(t.Context(), login, login.Login); err != nil {
		t.Fatal(err)
	}
	expect("without the login", false, false, true, false)
	r.home.block("clara")
	r.now = r.now.Add(4 * time.Second)
	expect("when Clara is blocked", false, false, false, false)
}
