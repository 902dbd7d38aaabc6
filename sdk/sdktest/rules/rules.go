package rules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/kernel"
)

// Subject is an extension that can be started as often as a rule needs it.
type Subject struct {
	Spec kernel.Spec // its grants, configuration, secrets and directories
	// Start starts it and returns when it can be called. Rules ask for one at a time.
	Start func(context.Context) (*Process, error)
	// InProcess: it runs in the process of a test, so the rules about a process of its own
	// do not apply.
	InProcess bool
	// SocketDir is a directory with a short path, from which the extension may open sockets.
	SocketDir string
}

// States of a Result.
const (
	Pass = "pass"
	Fail = "fail"
	Skip = "skip" // the rule does not apply; Seen says why
)

// Result is what became of one rule.
type Result struct {
	Rule     string `json:"rule"`
	State    string `json:"state"`
	Expected string `json:"expected"`
	Seen     string `json:"seen"`
	Hint     string `json:"hint,omitempty"` // what to do; of a failure
	Took     int64  `json:"took_ms"`
}

// Options of Check.
type Options struct {
	// Patience bounds each wait for the extension; zero: 10 s.
	Patience time.Duration
	// Each is called with each result as soon as it is known; nil: no one is told.
	Each func(Result)
}

const defaultPatience = 10 * time.Second

// rule is one thing that every extension owes the kernel.
type rule struct {
	name     string
	expected string
	hint     string
	// check returns what was seen. A skipped is no failure, any other error is.
	check func(*run, context.Context) (seen string, err error)
	// fresh: it needs an extension that no other rule has used.
	fresh bool
	// basic: without it, the rules after it cannot be checked.
	basic bool
	// process: it is about a process of its own.
	process bool
	// note: it is checked all the time; what broke it was noted.
	note bool
}

// skipped says why a rule does not apply.
type skipped string

func (s skipped) Error() string { return string(s) }

// Names lists the rules in the order in which they are checked.
func Names() (names []string) {
	for _, r := range all() {
		names = append(names, r.name)
	}
	return names
}

func all() []rule {
	var all []rule
	for _, some := range [][]rule{
		startRules, eventRules, channelRules, toolRules, modelRules, endRules, noteRules,
	} {
		all = append(all, some...)
	}
	return all
}

// Check checks every rule and returns all results, in order. It ends early only with ctx.
func Check(ctx context.Context, s Subject, o Options) (results []Result) {
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	r := newRun(s, o.Patience)
	defer r.end()
	var broken string // the basic rule that failed
	for _, rule := range all() {
		began := time.Now()
		result := Result{Rule: rule.name, Expected: rule.expected}
		var err error
		switch {
		case ctx.Err() != nil:
			return results
		case broken != "" && !rule.note:
			err = skipped("not checked: " + broken + " failed")
		case rule.process && s.InProcess:
			err = skipped("it runs in the process of the test")
		default:
			if rule.fresh {
				r.discard()
			}
			result.Seen, err = rule.check(r, ctx)
			if rule.fresh {
				r.discard()
			}
		}
		result.Took = time.Since(began).Milliseconds()
		var skip skipped
		switch {
		case err == nil:
			result.State = Pass
		case errors.As(err, &skip):
			result.State, result.Seen = Skip, skip.Error()
		default:
			result.State, result.Seen, result.Hint = Fail, err.Error(), rule.hint
			r.discard()
			if rule.basic {
				broken = rule.name
			}
		}
		results = append(results, result)
		if o.Each != nil {
			o.Each(result)
		}
	}
	return results
}

// Failed returns the results that are failures.
func Failed(results []Result) (failed []Result) {
	for _, r := range results {
		if r.State == Fail {
			failed = append(failed, r)
		}
	}
	return failed
}

func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
