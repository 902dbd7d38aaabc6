package models_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/models"
)

// provider is how a provider answers: with texts, and an error after them.
type provider struct {
	texts []string
	err   error
}

// fake is the providers by id, and what was asked.
type fake struct {
	providers map[string]provider
	asked     []string
}

func (f *fake) Complete(
	_ context.Context,
	extension string,
	r *extensionv1.CompleteRequest,
	emit func(*extensionv1.Delta) error,
) error {
	f.asked = append(f.asked, extension+"/"+r.GetModel())
	p := f.providers[extension]
	for _, text := range p.texts {
		if err := emit(&extensionv1.Delta{Text: text}); err != nil {
			return err
		}
	}
	return p.err
}

func active(id string, models ...string) directory.Provider {
	return directory.Provider{
		Extension: id,
		Models:    models,
		State:     contract.StateActive,
		Readiness: &extensionv1.Readiness{State: extensionv1.Readiness_STATE_READY},
	}
}

func fallback(id string, models ...string) directory.Provider {
	p := active(id, models...)
	p.Fallback = true
	return p
}

func with(p directory.Provider, state string, readiness extensionv1.Readiness_State, detail string) directory.Provider {
	p.State, p.Readiness = state, &extensionv1.Readiness{State: readiness, Detail: detail}
	return p
}

func order() models.Order {
	return models.Order{Model: "default", Request: &extensionv1.CompleteRequest{Agent: "chat", Session: "s1"}}
}

const (
	ready        = extensionv1.Readiness_STATE_READY
	unconfigured = extensionv1.Readiness_STATE_UNCONFIGURED
	degraded     = extensionv1.Readiness_STATE_DEGRADED
	offline      = extensionv1.Readiness_STATE_OFFLINE
)

func TestWhichModelsAreTried(t *testing.T) {
	t.Parallel()
	openai, local, grammar := active(
		"openai",
		"openai/*",
	), active(
		"local",
		"local/small",
		"local/big",
	), fallback(
		"offline",
		"offline/grammar",
	)
	noKey := with(openai, contract.StateActive, unconfigured, "set OPENAI_API_KEY")
	tests := []struct {
		name string
		now  directory.Snapshot
		ask  string
		want []string
	}{
		{
			"by full name",
			directory.Snapshot{Models: []directory.Provider{openai}, Settings: directory.Settings{ModelOrder: []string{"local/small"}}},
			"openai/x",
			[]string{"openai/x"},
		},
		{
			"by a name of the configuration",
			directory.Snapshot{Settings: directory.Settings{ModelNames: map[string][]string{"scout": {"openai/nano"}}, ModelOrder: []string{"a/b"}}},
			"scout",
			[]string{"openai/nano"},
		},
		{
			"the order of the configuration",
			directory.Snapshot{Models: []directory.Provider{openai}, Settings: directory.Settings{ModelOrder: []string{"local/big", "openai/x"}}},
			"default",
			[]string{"local/big", "openai/x"},
		},
		{"a name without a model is the default", directory.Snapshot{Settings: directory.Settings{ModelOrder: []string{"a/b"}}}, "scout", []string{"a/b"}},
		{
			"all that are configured",
			directory.Snapshot{Models: []directory.Provider{local, grammar, openai}},
			"default",
			[]string{"local/small", "openai/*"},
		},
		{
			"one that is down is configured all the same",
			directory.Snapshot{Models: []directory.Provider{with(openai, "failed", offline, ""), grammar}},
			"default",
			[]string{"openai/*"},
		},
		{
			"offline when no other is configured",
			directory.Snapshot{Models: []directory.Provider{grammar, noKey}},
			"default",
			[]string{"offline/grammar"},
		},
		{
			"offline when there is no other",
			directory.Snapshot{Models: []directory.Provider{grammar}},
			"default",
			[]string{"offline/grammar"},
		},
		{"none", directory.Snapshot{Models: []directory.Provider{noKey}}, "default", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := models.Candidates(&test.now, test.ask); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	busy, gone := errors.New("429 too many requests"), fmt.Errorf("%w: it crashed", contract.ErrGone)
	a, b := active("a", "a/*"), active("b", "b/m")
	tests := []struct {
		name      string
		providers []directory.Provider
		answers   map[string]provider
		text      string
		model     string
		fails     []string // words of the error
		asked     []string
	}{
		{
			"the first one answers",
			[]directory.Provider{a, b},
			map[string]provider{"a": {texts: []string{"one", "two"}}},
			"onetwo",
			"a/*",
			nil,
			[]string{"a/"},
		},
		{
			"the first one fails before its first word",
			[]directory.Provider{a, b},
			map[string]provider{"a": {err: busy}, "b": {texts: []string{"two"}}},
			"two",
			"b/m",
			nil,
			[]string{"a/", "b/m"},
		},
		{
			"the first one fails after its first word",
			[]directory.Provider{a, b},
			map[string]provider{"a": {texts: []string{"half"}, err: busy}, "b": {texts: []string{"two"}}},
			"half",
			"a/*",
			[]string{"429"},
			[]string{"a/"},
		},
		{
			"the first one dies after its first word",
			[]directory.Provider{a, b},
			map[string]provider{"a": {texts: []string{"half"}, err: gone}},
			"half",
			"a/*",
			[]string{"crashed"},
			[]string{"a/"},
		},
		{
			"one is not running",
			[]directory.Provider{with(a, "failed", offline, ""), b},
			map[string]provider{"b": {texts: []string{"two"}}},
			"two",
			"b/m",
			nil,
			[]string{"b/m"},
		},
		{
			"one is not set up",
			[]directory.Provider{with(a, "active", unconfigured, "no key"), b},
			map[string]provider{"b": {texts: []string{"two"}}},
			"two",
			"b/m",
			nil,
			[]string{"b/m"},
		},
		{
			"a degraded one is asked",
			[]directory.Provider{with(a, "active", degraded, "slow")},
			map[string]provider{"a": {texts: []string{"one"}}},
			"one",
			"a/*",
			nil,
			[]string{"a/"},
		},
		{
			"all fail, each says why",
			[]directory.Provider{a, b},
			map[string]provider{"a": {err: busy}, "b": {err: errors.New("401 wrong key")}},
			"",
			"",
			[]string{"429 too many requests", "401 wrong key"},
			[]string{"a/", "b/m"},
		},
		{
			"none can be asked",
			[]directory.Provider{with(a, "active", unconfigured, "set A_KEY"), with(b, "failed", offline, "")},
			nil,
			"",
			"",
			[]string{"a is not set up: set A_KEY", "the extension b is failed"},
			nil,
		},
		{
			"one is not there",
			[]directory.Provider{a},
			map[string]provider{"a": {err: busy}},
			"",
			"",
			[]string{"429", `no extension "b" provides models`},
			[]string{"a/"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d, remote := &directory.Directory{}, &fake{providers: test.answers}
			d.Set(&directory.Snapshot{Models: test.providers, Settings: directory.Settings{ModelOrder: []string{"a/*", "b/m"}}})
			r := models.Router{Directory: d, Remote: remote}
			var text, model string
			err := r.Complete(t.Context(), order(), func(d *extensionv1.Delta) error {
				text += d.GetText()
				model += d.GetModel()
				return nil
			})
			if text != test.text || model != test.model || !slices.Equal(remote.asked, test.asked) ||
				(err != nil) != (test.fails != nil) {
				t.Errorf("got %q of %q after asking %v: %v", text, model, remote.asked, err)
			}
			for _, word := range test.fails {
				if err != nil && !strings.Contains(err.Error(), word) {
					t.Errorf("the error %q lacks %q", err, word)
				}
			}
		})
	}
}

func TestWithoutAnyModelTheErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for want, providers := range map[string][]directory.Provider{
		"no extension provides models":         nil,
		"openai is not set up: set OPENAI_KEY": {with(active("openai", "openai/*"), contract.StateActive, unconfigured, "set OPENAI_KEY")},
	} {
		d := &directory.Directory{}
		d.Set(&directory.Snapshot{Models: providers})
		r := models.Router{Directory: d, Remote: &fake{}}
		err := r.Complete(t.Context(), order(), nil)
		if !errors.Is(err, contract.ErrUnavailable) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func TestAReaderThatStopsEndsTheCompletion(t *testing.T) {
	t.Parallel()
	d, remote := &directory.Directory{}, &fake{providers: map[string]provider{"a": {texts: []string{"one", "two"}}}}
	d.Set(&directory.Snapshot{Models: []directory.Provider{active("a", "a/*"), active("b", "b/*")}})
	r := models.Router{Directory: d, Remote: remote}
	enough := errors.New("enough")
	err := r.Complete(t.Context(), order(), func(*extensionv1.Delta) error { return enough })
	if !errors.Is(err, enough) || len(remote.asked) != 1 {
		t.Errorf("%v after asking %v", err, remote.asked)
	}
}

// A window that is told before an error begins no answer: the next model is asked.
func TestAToldWindowBeginsNoAnswer(t *testing.T) {
	t.Parallel()
	d := &directory.Directory{}
	d.Set(&directory.Snapshot{Models: []directory.Provider{active("a", "a/*"), active("b", "b/*")}})
	r := models.Router{Directory: d, Remote: tooSmall{}}
	var got []string
	err := r.Complete(t.Context(), order(), func(x *extensionv1.Delta) error {
		got = append(got, fmt.Sprintf("%s %d %s", x.GetModel(), x.GetContext(), x.GetText()))
		return nil
	})
	if want := []string{"a/* 4096 ", "b/* 128000 one"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// tooSmall refuses what is asked of a, and answers for b.
type tooSmall struct{}

func (tooSmall) Complete(
	_ context.Context, extension string, _ *extensionv1.CompleteRequest, emit func(*extensionv1.Delta) error,
) error {
	if extension == "b" {
		return emit(&extensionv1.Delta{Text: "one", Context: 128_000})
	}
	if err := emit(&extensionv1.Delta{Context: 4096}); err != nil {
		return err
	}
	return fmt.Errorf("%w: too long", contract.ErrInvalid)
}

func TestAProviderThatIsBeingStartedIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, comes := range map[string]bool{"it comes": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, remote := &directory.Directory{}, &fake{providers: map[string]provider{"a": {texts: []string{"one"}}}}
				d.Set(
					&directory.Snapshot{
						Models: []directory.Provider{with(active("a", "a/*"), contract.StateBackingOff, offline, "")},
					},
				)
				began := time.Now()
				if comes {
					time.AfterFunc(5*time.Second, func() {
						d.Set(&directory.Snapshot{Models: []directory.Provider{active("a", "a/*")}})
					})
				}
				r := models.Router{Directory: d, Remote: remote}
				err := r.Complete(t.Context(), order(), func(*extensionv1.Delta) error { return nil })
				if took := time.Since(began); (err == nil) != comes || comes && took > 6*time.Second || took > 31*time.Second {
					t.Errorf("%v after %s", err, took)
				}
				if err != nil && !strings.Contains(err.Error(), "backing_off") {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

// What has failed for good is said at once, whatever else may still come.
func TestARefusalIsNotRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, remote := &directory.Directory{}, &fake{providers: map[string]provider{"a": {err: errors.New("401 wrong key")}}}
		d.Set(
			&directory.Snapshot{
				Models: []directory.Provider{active("a", "a/*"), with(active("b", "b/*"), contract.StateStarting, ready, "")},
			},
		)
		began := time.Now()
		r := models.Router{Directory: d, Remote: remote}
		err := r.Complete(t.Context(), order(), func(*extensionv1.Delta) error { return nil })
		if err == nil || time.Since(began) > 0 || len(remote.asked) != 1 {
			t.Errorf("%v after %s and %v", err, time.Since(began), remote.asked)
		}
	})
}

// The offline grammar understands what people say, and nothing else.
func TestOnlyStepsOfTurnsAskTheGrammar(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		order []string
		ask   string
		asked []string
	}{
		{"it is all there is", []string{"offline/grammar"}, "default", nil},
		{"it is the scout by the configuration", nil, "offline/grammar", nil},
		{"another one comes behind it", []string{"offline/grammar", "a/m"}, "scout", []string{"a/m"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d, remote := &directory.Directory{}, &fake{
				providers: map[string]provider{"a": {texts: []string{"one"}}, "offline": {texts: []string{"no"}}},
			}
			d.Set(
				&directory.Snapshot{
					Models: []directory.Provider{active("a", "a/m"), fallback("offline", "offline/grammar")}, Settings: directory.Settings{ModelOrder: test.order},
				},
			)
			r := models.Router{Directory: d, Remote: remote}
			err := r.Complete(
				t.Context(),
				models.Order{Model: test.ask, Request: &extensionv1.CompleteRequest{Purpose: "triage"}},
				func(*extensionv1.Delta) error { return nil },
			)
			if !slices.Equal(remote.asked, test.asked) || (err == nil) != (test.asked != nil) {
				t.Errorf("asked %v: %v", remote.asked, err)
			}
			if err != nil && !errors.Is(err, contract.ErrUnavailable) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
