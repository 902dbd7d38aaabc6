package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/home/cluster/link"
	"github.com/switchboard-run/switchboard/store/postgres"
)

func holdingOf(values ...string) (h Holding) {
	for _, v := range values {
		name, value, _ := strings.Cut(v, "=")
		h.Secrets = append(h.Secrets, Secret{Name: name, Value: value, Required: !strings.HasPrefix(name, "OPT")})
	}
	return h
}

// Names of cells become directories, and anyone who can write to PostgreSQL can choose them.
func TestANodeServesNoCellWithAStrangeName(t *testing.T) {
	t.Parallel()
	n := &Node{options: Options{Name: "a", Cell: "main"}, seats: map[int64]*seat{}, reach: &reach{},
		reported: time.Now()}
	var v postgres.View
	for i, name := range []string{"..", "../..", "../../etc", "/etc", "", ".", "a/b", "A", "x y", strings.Repeat("x", 65)} {
		v.Cells = append(v.Cells, postgres.Seen{ID: int64(i + 1), Name: name})
	}
	n.place(t.Context(), v) // a seat would need a database
	if len(n.seats) > 0 {
		t.Errorf("the node serves %d of them", len(n.seats))
	}
}

func TestDigestsTellOnlyEquality(t *testing.T) {
	t.Parallel()
	key := link.NewKey()
	told := held(key, "main", holdingOf("A=s3cret-value", "B=s3cret-value", "C="))
	text := Facts{Key: key.Fingerprint(), Cells: map[string]Held{"main": told}}.text()
	if strings.Contains(text, "s3cret") || strings.Contains(text, strings.TrimPrefix(key.Text(), "switchboard-cluster-")) {
		t.Errorf("a node tells %s", text)
	}
	digests := map[string]string{}
	for what, h := range map[string]Held{
		"main":          told,
		"another cell":  held(key, "flat", holdingOf("A=s3cret-value")),
		"another value": held(key, "main", holdingOf("A=s3cret-valuf")),
		"another key":   held(link.NewKey(), "main", holdingOf("A=s3cret-value")),
	} {
		for name, s := range h.Secrets {
			if other, known := digests[s.Digest]; known || len(s.Digest) != 2*digestBytes {
				t.Errorf("the digest of %s in %s is %q, as that of %s", name, what, s.Digest, other)
			}
			digests[s.Digest] = name + " in " + what
		}
	}
	if again := held(key, "main", holdingOf("A=s3cret-value")); again.Secrets["A"] != told.Secrets["A"] {
		t.Error("the same value has two digests")
	}
	if d := held(nil, "main", holdingOf("A=s3cret-value")).Secrets["A"]; d != (SecretDigest{Required: true}) {
		t.Errorf("without a key a node tells %+v", d)
	}
}

func TestDifferencesAreNamed(t *testing.T) {
	t.Parallel()
	key, other := link.NewKey(), link.NewKey()
	told := func(node string, key *link.Key, programs map[string]string, values ...string) postgres.Told {
		h := holdingOf(values...)
		h.Programs = programs
		f := Facts{Cells: map[string]Held{"main": held(key, "main", h)}}
		if key != nil {
			f.Key = key.Fingerprint()
		}
		return postgres.Told{Node: node, Facts: f.text()}
	}
	all := []postgres.Told{
		told("a", key, map[string]string{"x": "1", "y": "1", "z": ""}, "A=1", "B=1", "OPT=1"),
		told("b", key, map[string]string{"x": "1", "y": "1", "z": ""}, "A=1", "B=1", "OPT=1"),
		told("c", key, map[string]string{"x": "2", "y": "", "z": "1"}, "B=2", "C=1", "OPT_MORE=1"),
		told("d", other, map[string]string{"x": "1", "y": "1"}, "A=1", "B=2", "OPT=1"),
		told("e", nil, map[string]string{"x": "1", "y": "1"}, "A=1", "B=1"),
		{Node: "f", Facts: "{}"},
	}
	var got []string
	for _, d := range Compare(all, map[string]string{"main": "a", "unowned": ""}) {
		got = append(got, fmt.Sprint(d.What, " ", d.Node, " ", d.Names, " ", d.Than))
		if d.Cell != "main" && d.What != KeyDiffers || d.Hint() == "" {
			t.Errorf("%+v: %s", d, d.Hint())
		}
	}
	want := []string{
		"key d [] a", "key e [] a", "key f [] a",
		"secrets_missing c [A OPT] a", "secrets_differ c [B] a", "programs_not_allowed c [y] a", "programs_differ c [x] a",
		"secrets_missing a [C] c", "programs_not_allowed a [z] c",
		"secrets_missing e [OPT] a",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the differences are\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestNodesWithTheSecretsTakeOverFirst(t *testing.T) {
	t.Parallel()
	facts := map[string]Facts{}
	for node, values := range map[string][]string{
		"a": {"A=1", "OPT=1"}, "b": {"A=2"}, "c": {"OPT=1"}, "owner": {"A=1", "B=1"},
	} {
		facts[node] = Facts{Cells: map[string]Held{"main": held(nil, "main", holdingOf(values...))}}
	}
	members := func(names ...string) (all []postgres.Member) {
		for _, name := range names {
			all = append(all, postgres.Member{Name: name, Live: true})
		}
		return all
	}
	for _, x := range []struct{ nodes, want string }{
		{"c", "c 0s"},                           // there is no other
		{"c d", "c 0s, d 1s"},                   // no other has them
		{"c a", "a 0s, c 11s"},                  // the optional one does not count
		{"c b d a", "b 0s, a 1s, c 12s, d 13s"}, // d told nothing yet
		{"b owner c", "owner 0s, b 11s, c 12s"}, // which came back
		{"a b", "a 0s, b 1s"},                   // another value is one
	} {
		nodes := members(strings.Fields(x.nodes)...)
		counts := lacking(facts, "main", nodes)
		completest(nodes, counts)
		var got []string
		for i, m := range nodes {
			got = append(got, fmt.Sprint(m.Name, " ", patience(nodes, i, counts)))
		}
		if strings.Join(got, ", ") != x.want {
			t.Errorf("%s: %v, not %s", x.nodes, got, x.want)
		}
	}
	wanted := members("c", "a") // it was moved there
	if wait := patience(wanted, 1, map[string]int{"c": 1}); wait != time.Second {
		t.Errorf("the node after a wanted one waits %s", wait)
	}
	if names := (&reach{node: "c", others: facts}).missing("main"); fmt.Sprint(names) != "[A B]" {
		t.Errorf("c lacks %v", names)
	}
}
