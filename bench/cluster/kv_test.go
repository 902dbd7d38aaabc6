package main

import "testing"

// A model that allows everything would always be content.
func TestTheModelSeesWhatNoOrderExplains(t *testing.T) {
	t.Parallel()
	put := func(client string, value, version, call, back int64) operation {
		return operation{Client: client, Key: "k", Kind: "put", Value: value, Version: version, Call: call, Return: back,
			Outcome: done}
	}
	get := func(client string, value, version, call, back int64) operation {
		o := put(client, value, version, call, back)
		o.Kind = "get"
		return o
	}
	outcome := func(o operation, outcome string) operation {
		o.Outcome = outcome
		return o
	}
	for name, tt := range map[string]struct {
		history []operation
		fine    bool
	}{
		"in order":             {[]operation{put("a", 7, 3, 1, 2), get("b", 7, 3, 3, 4), put("a", 8, 4, 5, 6)}, true},
		"a stale read":         {[]operation{put("a", 7, 3, 1, 2), put("a", 8, 4, 3, 4), get("b", 7, 3, 5, 6)}, false},
		"a lost write":         {[]operation{put("a", 7, 3, 1, 2), get("b", 0, 0, 3, 4)}, false},
		"a version twice":      {[]operation{put("a", 7, 3, 1, 2), put("b", 8, 3, 3, 4)}, false},
		"unknown, happened":    {[]operation{outcome(put("a", 7, 0, 1, 2), unknown), get("b", 7, 3, 3, 4)}, true},
		"unknown, later":       {[]operation{outcome(put("a", 7, 0, 1, 2), unknown), get("b", 0, 0, 3, 4), get("b", 7, 3, 5, 6)}, true},
		"refused, happened":    {[]operation{outcome(put("a", 7, 0, 1, 2), refused), get("b", 7, 3, 3, 4)}, false},
		"unknown, and undone":  {[]operation{outcome(put("a", 7, 0, 1, 2), unknown), get("b", 7, 3, 3, 4), get("b", 0, 0, 5, 6)}, false},
		"killed, and happened": {[]operation{put("a", 7, 0, 1, 0), get("b", 7, 3, 3, 4)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, problems := linearizable(tt.history); (len(problems) == 0) != tt.fine {
				t.Errorf("%q", problems)
			}
		})
	}
}
