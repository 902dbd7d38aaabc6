package consent_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/consent"
	"github.com/switchboard-run/switchboard/manifests"
)

func newHome(t *testing.T) *config.Home {
	t.Helper()
	h, err := config.OpenHomeAt(filepath.Join(t.TempDir(), "h"))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestDecisionsAreKept(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	if _, err := consent.Read(h); !errors.Is(err, consent.ErrNone) {
		t.Fatalf("a new home has %v", err)
	}
	var all sync.WaitGroup
	for i := range 8 { // none is lost
		all.Go(func() {
			_, err := consent.Update(h, nil, func(d consent.Decisions) (bool, error) {
				d[fmt.Sprint("x", i)] = consent.Decision{Allowed: manifests.Request{{Kind: manifests.AskTools}}}
				return true, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	d, err := consent.Read(h)
	if len(d) != 8 || err != nil {
		t.Fatalf("there are %v, %v", d, err)
	}
	if info, err := os.Stat(consent.File(h)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	tools := manifests.Request{{Kind: manifests.AskTools}}
	more := append(manifests.Request{{Kind: manifests.AskSessions}}, tools...)
	_, err = consent.Update(h, nil, func(d consent.Decisions) (bool, error) {
		delete(d, "x3")
		d["x4"] = consent.Decision{Allowed: tools, Refused: consent.Code("x4", more)}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err = consent.Read(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		id   string
		asks manifests.Request
		want consent.State
	}{
		{"x1", tools, consent.Allowed}, {"x1", nil, consent.Allowed}, {"x1", more, consent.Asks},
		{"x3", tools, consent.Asks}, {"x4", tools, consent.Allowed}, {"x4", more, consent.Refused},
		{"new", nil, consent.Allowed}, {"new", tools, consent.Asks},
	} {
		if got := d.Judge(tt.id, tt.asks); got != tt.want {
			t.Errorf("%s with %v: %s, want %s", tt.id, tt.asks, got, tt.want)
		}
	}
}

func TestDamagedDecisionsAreNotOverwritten(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "{", `{"version": 2, "extensions": {}}`, `{"version": 1, "extensions": {"a": {"alowed": []}}}`,
		`{"version": 1, "extensions": {}} {}`,
	} {
		h := newHome(t)
		if err := os.WriteFile(consent.File(h), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := consent.Update(h, nil, func(consent.Decisions) (bool, error) { return true, nil })
		if err == nil || !strings.Contains(err.Error(), "consent.json") {
			t.Errorf("%q: %v", text, err)
		}
		if have, err := os.ReadFile(consent.File(h)); err != nil || string(have) != text {
			t.Errorf("%q became %q, %v", text, have, err)
		}
		live := consent.Open(h, nil)
		if d, err := live.Current(); len(d) > 0 || err == nil {
			t.Errorf("%q: in force are %v, %v", text, d, err)
		}
	}
}

func TestDeletedDecisionsAreAskedAgain(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	first := func() consent.Decisions { return consent.Decisions{"old": {Manifest: "x"}} }
	live := consent.Open(h, first)
	if err := live.Create(); err != nil {
		t.Fatal(err)
	}
	if d, err := live.Current(); d["old"].Manifest != "x" || err != nil {
		t.Fatalf("at first there are %v, %v", d, err)
	}
	if err := os.Remove(consent.File(h)); err != nil {
		t.Fatal(err)
	}
	if d, err := live.Current(); len(d) != 0 || err != nil {
		t.Errorf("after they were deleted there are %v, %v", d, err)
	}
}
