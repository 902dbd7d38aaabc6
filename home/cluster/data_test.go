package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/store/postgres"
)

// lastOf reads "EPOCH EXTENSION=EPOCH...".
func lastOf(t *testing.T, mark, text string) *Tenancy {
	t.Helper()
	words := strings.Fields(text)
	x := &Tenancy{Mark: mark, Data: map[string]int64{}}
	if _, err := fmt.Sscan(words[0], &x.Epoch); err != nil {
		t.Fatal(err)
	}
	for _, w := range words[1:] {
		id, epoch, _ := strings.Cut(w, "=")
		var n int64
		if _, err := fmt.Sscan(epoch, &n); err != nil {
			t.Fatal(err)
		}
		x.Data[id] = n
	}
	return x
}

func TestACellStaysWhereItsDataIs(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		last map[string]string // what the nodes told, by their names
		want string
	}{
		"nothing is told":                   {nil, ""},
		"nothing is pinned":                 {map[string]string{"a": "1"}, ""},
		"one owner":                         {map[string]string{"a": "1 wa=1"}, "a [wa]"},
		"moved without the data":            {map[string]string{"a": "4 wa=4", "b": "5 wa=5"}, "b [wa]"},
		"and back":                          {map[string]string{"a": "6 wa=6", "b": "5 wa=5"}, "a [wa]"},
		"moved where it may not run":        {map[string]string{"a": "4 wa=4", "b": "5 wa=0"}, "a [wa]"},
		"moved and then disabled":           {map[string]string{"a": "4 wa=4", "b": "5"}, ""},
		"disabled, moved and enabled again": {map[string]string{"a": "4 wa=4", "b": "5", "c": "6 wa=6"}, "c [wa]"},
		"one of two ran elsewhere later":    {map[string]string{"a": "4 mail=4 wa=4", "b": "5 mail=0 wa=5"}, "b [wa]"},
		"enabled, but it never ran":         {map[string]string{"a": "4 wa=0"}, ""},
		"of an earlier cell with the name":  {map[string]string{"a": "1", "old": "9 wa=9"}, ""},
		"two of one node":                   {map[string]string{"a": "2 wa=2 mail=2", "b": "1 wa=1"}, "a [mail wa]"},
	} {
		facts := map[string]Facts{}
		for node, text := range x.last {
			mark := "m"
			if node == "old" {
				mark = "another"
			}
			facts[node] = Facts{Cells: map[string]Held{"main": {Last: lastOf(t, mark, text)}}}
		}
		got := ""
		if p := pinOf(facts, postgres.Seen{Name: "main", Mark: "m"}); p != nil {
			got = fmt.Sprint(p.Node, " ", p.Extensions)
		}
		if got != x.want {
			t.Errorf("%s: it stays on %q, not on %q", name, got, x.want)
		}
	}
}

func TestWhoTakesAPinnedCell(t *testing.T) {
	t.Parallel()
	for members, x := range map[string][2]string{ // nodes; ! is gone, ~ drains, - stops
		"a b c":  {"", "[a]"},
		"!a b c": {"", "[]"},
		"-a b c": {"", "[]"},
		"~a b c": {"", "[a]"}, // or no node would have it
		"a b":    {"b", "[b a]"},
		"!a b":   {"b", "[b]"},
		"a !b":   {"b", "[a]"},
		"a":      {"a", "[a]"},
	} {
		var all []postgres.Member
		for name := range strings.FieldsSeq(members) {
			m := postgres.Member{Name: strings.TrimLeft(name, "!~-"), Live: name[0] != '!', Draining: name[0] == '~'}
			if name[0] == '-' {
				m.State = postgres.Stopping
			}
			all = append(all, m)
		}
		got := []string{}
		for _, m := range holders(all, &Pin{Node: "a"}, x[0]) {
			got = append(got, m.Name)
		}
		if fmt.Sprint(got) != x[1] {
			t.Errorf("%s, wanted on %q: %v, not %s", members, x[0], got, x[1])
		}
	}
}

// What a node tells of its last time as an owner stays until it owns the cell again.
func TestWhatIsToldOfData(t *testing.T) {
	t.Parallel()
	runs, refused := map[string]bool{"wa": true}, map[string]bool{"wa": false}
	told := Held{}
	for _, step := range []struct {
		now  having
		want string
	}{
		{having{held: &Held{}, data: runs, mark: "m"}, "<nil>"}, // a standby
		{having{held: &Held{}, data: runs, mark: "m", epoch: 3}, "&{m 3 map[wa:3]}"},
		{having{mark: "m", epoch: 3}, "&{m 3 map[wa:3]}"}, // reading the home failed
		{having{held: &Held{}, data: map[string]bool{}, mark: "m"}, "&{m 3 map[wa:3]}"},
		{having{held: &Held{}, data: refused, mark: "m", epoch: 5}, "&{m 5 map[wa:3]}"},
		{having{held: &Held{}, data: runs, mark: "m", epoch: 4}, "&{m 5 map[wa:3]}"}, // late
		{having{held: &Held{}, data: map[string]bool{}, mark: "m", epoch: 6}, "&{m 6 map[]}"},
		{having{held: &Held{}, data: refused, mark: "new", epoch: 1}, "&{new 1 map[wa:0]}"},
	} {
		if told = step.now.after(told); fmt.Sprint(told.Last) != step.want {
			t.Errorf("after %+v: %v, not %s", step.now, told.Last, step.want)
		}
	}
}
