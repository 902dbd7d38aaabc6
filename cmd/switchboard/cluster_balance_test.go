package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/home/cluster"
)

func TestCellsAreBalanced(t *testing.T) {
	t.Parallel()
	// A node is NAME or NAME=STATE. A cell is NAME@OWNER and words for what is special.
	for _, x := range []struct{ nodes, cells, want string }{
		{"a b", "", ""},
		{"a b", "x@a", ""},
		{"a b", "x@a y@b z@b", ""},
		{"a b", "x@a y@a", "x to b"},
		{"a b c", "u@a v@a w@a x@a y@b", "u to c; v to b"},
		{"a b=stopped", "x@a y@a", ""},
		{"a b=draining", "x@a y@a", ""},
		{"a=silent b", "x@a y@a", ""},
		{"a b", "x@a,ready=b y@a", "x to b"},
		{"a b", "x@a y@a,ready=b", "y to b"},
		{"a b", "x@a,ready=b,own=a y@a", "y to b"},        // the home of x is on a
		{"a b", "x@a,ready=b y@a,own=b", "y to b"},        // and that of y on b
		{"a b", "x@a,own=a,own=b,ready=b y@a", "x to b"},  // on both
		{"a b", "x@a,pinned=a y@a,wanted=b", ""},          // y moves already
		{"a b", "x@a,pinned=b y@a,ready=b z@a", "y to b"}, // x may go there, too
		{"a b", "x@a,pinned=a y@a,failed=b", ""},          // no cell that b can take
		{"a b c", "x@a,pinned=a y@a,lacks=b z@a", "z to b; y to c"},
		{"a b c", "x@a,lacks=b y@a,lacks=b z@a,lacks=b", "x to c"},
		{"a b", "x@gone y@gone z@a", ""},
	} {
		r := &clusterReport{}
		for n := range strings.FieldsSeq(x.nodes) {
			name, state, special := strings.Cut(n, "=")
			if !special {
				state = "running"
			}
			r.Nodes = append(r.Nodes, &clusterNode{Name: name, State: state, Lease: state == "running"})
		}
		for text := range strings.FieldsSeq(x.cells) {
			words := strings.Split(text, ",")
			name, owner, _ := strings.Cut(words[0], "@")
			c := &clusterCell{Name: name, Owner: owner}
			on := map[string]cluster.Standing{}
			for _, w := range words[1:] {
				what, node, _ := strings.Cut(w, "=")
				s := on[node]
				switch what {
				case "pinned":
					c.Pinned = &cluster.Pin{Node: node}
				case "wanted":
					c.Wanted = node
				case "lacks":
					r.Differences = append(r.Differences, cluster.Difference{What: cluster.SecretsMissing, Node: node, Cell: name})
				case "own":
					s.Own = true
				default:
					s.Role = what
				}
				on[node] = s
			}
			for node, s := range on {
				c.Nodes = append(c.Nodes, cellOnNode{Node: node, Standing: s})
			}
			r.Cells = append(r.Cells, c)
		}
		var got []string
		for _, m := range balanced(r) {
			got = append(got, fmt.Sprintf("%s to %s", m.Cell, m.To))
		}
		if strings.Join(got, "; ") != x.want {
			t.Errorf("%s with %s: %q, not %q", x.nodes, x.cells, got, x.want)
		}
	}
}
