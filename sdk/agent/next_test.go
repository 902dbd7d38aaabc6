package agent

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// rowsOf writes a turn in short: "i" an input, "n" a note, "t" a final text,
// "a(r1 w2)" an answer with calls, "=1" the result of call 1, "r1!" a closed and
// "r1+" a running call. Names that begin with r are read-only.
func rowsOf(script string) []row {
	var rows []row
	add := func(e *busv1.Entry) { rows = append(rows, newRow(e, 1)) }
	script = strings.NewReplacer("a(", "a( ", ")", " )").Replace(script)
	var answer *busv1.Entry
	for f := range strings.FieldsSeq(script) {
		switch {
		case f == "i":
			add(&busv1.Entry{Kind: contract.EntryInput, InputKind: contract.InputUser, Text: "hi"})
		case f == "n":
			add(&busv1.Entry{Kind: contract.EntryNote, Text: "note"})
		case f == "t":
			add(&busv1.Entry{Kind: contract.EntryAnswer, Text: "done"})
		case f == "a(":
			answer = &busv1.Entry{Kind: contract.EntryAnswer}
		case f == ")":
			add(answer)
			answer = nil
		case strings.HasPrefix(f, "="):
			add(&busv1.Entry{Kind: contract.EntryResult, CallId: f[1:], Text: "ok"})
		default:
			state := "open"
			if name, ok := strings.CutSuffix(f, "!"); ok {
				f, state = name, "closed"
			}
			if name, ok := strings.CutSuffix(f, "+"); ok {
				f, state = name, "running"
			}
			answer.Calls = append(answer.Calls, &busv1.Call{CallId: f[1:], Name: f[:1], State: state})
		}
	}
	return rows
}

func TestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rows  string
		do    action
		calls string
	}{
		{"", ask, ""},
		{"i", ask, ""},
		{"i i n", ask, ""},
		{"i a(w1)", call, "1"},
		{"i a(w1) =1", ask, ""},
		{"i a(w1+)", call, "1"}, // runs already: joined
		{"i a(w1!)", ask, ""},   // closed without a result
		{"i a(w1! w2)", call, "2"},
		{"i a(w1 w2 w3)", call, "1"},
		{"i a(w1 w2 w3) =1", call, "2"},
		{"i a(w1 w2 w3) =1 =2", call, "3"},
		{"i a(w1 w2 w3) =2", call, "1"},
		{"i a(w1 w2 w3) =1 =2 =3", ask, ""},
		{"i a(r1 r2 r3)", call, "1 2 3"},
		{"i a(r1 r2 r3) =2", call, "1 3"},
		{"i a(r1 r2 w3 r4 r5)", call, "1 2"},
		{"i a(r1 r2 w3 r4 r5) =2", call, "1"},
		{"i a(r1 r2 w3 r4 r5) =2 =1", call, "3"},
		{"i a(r1 r2 w3 r4 r5) =2 =1 =3", call, "4 5"},
		{"i a(w1) n =1", ask, ""},
		{"i a(w1) =1 a(w2)", call, "2"},
		{"i a(w1) =1 a(w2) =2", ask, ""},
		{"i a(w1) =1 a(w2) =2 a(w3)", call, "3"},
		{"i a(w1) =1 a(w2) =2 a(w3) =3", capped, ""},
		{"i a(f1) =1", finish, ""},
		{"i a(f1 w2) =1", call, "2"},
		{"i a(w1 f2) =1 =2", finish, ""},
		{"i a(f1) ", call, "1"},
		{"i a(f1!)", ask, ""},
		{"i a(w1) =1 a(w2) =2 a(f3) =3", finish, ""},
		{"i t", finish, ""},
		{"i a(w1) =1 t", finish, ""},
	} {
		s := next(rowsOf(c.rows), 3, fakeTools{})
		var ids []string
		for _, c := range s.calls {
			ids = append(ids, c.GetCallId())
		}
		if s.do != c.do || strings.Join(ids, " ") != c.calls {
			t.Errorf("%q: action %d, calls %q; want %d, %q", c.rows, s.do, ids, c.do, c.calls)
		}
	}
}

// fakeTools is tools by their first letter.
type fakeTools struct{}

func (fakeTools) readOnly(name string) bool { return name == "r" }
func (fakeTools) final(name string) bool    { return name == "f" }
