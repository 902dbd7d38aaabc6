package spending

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Kept is for how many days sums are kept.
const Kept = 400

// prefix is that of the keys of sums in the kernel's own KV:
// usage/<day>/<agent>/<model>.
const prefix = "usage/"

type key struct{ day, agent, model string }

func (k key) String() string { return prefix + k.day + "/" + k.agent + "/" + k.model }

func parseKey(s string) (key, bool) {
	parts := strings.SplitN(strings.TrimPrefix(s, prefix), "/", 3)
	if len(parts) != 3 {
		return key{}, false
	}
	return key{parts[0], parts[1], parts[2]}, true
}

// Sum is what completions cost together.
type Sum struct {
	Calls     int64 `json:"calls"`
	Input     int64 `json:"input"`
	Output    int64 `json:"output"`
	Cached    int64 `json:"cached,omitempty"`    // of the input: what providers had in their caches
	Estimated int64 `json:"estimated,omitempty"` // of the calls: those whose tokens nobody said
}

func (s *Sum) add(u contract.ModelUsage) {
	s.Calls++
	s.Input += u.InputTokens
	s.Output += u.OutputTokens
	s.Cached += u.CachedTokens
	if u.Estimated {
		s.Estimated++
	}
}

func (s Sum) plus(o Sum) Sum {
	return Sum{s.Calls + o.Calls, s.Input + o.Input, s.Output + o.Output, s.Cached + o.Cached, s.Estimated + o.Estimated}
}

func (s Sum) bytes() []byte {
	b, _ := json.Marshal(s) //nolint:errchkjson // numbers
	return b
}

func parseSum(b []byte) (s Sum, err error) {
	if len(b) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("a sum of what was spent cannot be read: %w", err)
	}
	return s, nil
}

const chunk = 500

// scan reads the sums whose keys begin with from.
func scan(r journal.Reader, from string, each func(key, Sum) error) error {
	return keys(r, from, func(k key, value []byte) (more bool, err error) {
		s, err := parseSum(value)
		if err != nil {
			return false, err
		}
		return true, each(k, s)
	})
}

func keys(r journal.Reader, from string, each func(k key, value []byte) (more bool, err error)) error {
	for after := ""; ; {
		values, err := r.KVScan(contract.KernelSource, from, after, chunk)
		if err != nil {
			return err
		}
		for _, v := range values {
			after = v.Key
			k, ok := parseKey(v.Key)
			if !ok {
				continue
			}
			if more, err := each(k, v.Value); err != nil || !more {
				return err
			}
		}
		if len(values) < chunk {
			return nil
		}
	}
}

// prune deletes the sums that are too old on that day.
func (l *Ledger) prune(today string) {
	t, err := time.Parse(time.DateOnly, today)
	if err != nil {
		return
	}
	first := t.AddDate(0, 0, -Kept).Format(time.DateOnly)
	for {
		n := 0
		err := l.bus.Do(func(tx *bus.Tx) error {
			var old []string
			if err := keys(tx, prefix, func(k key, _ []byte) (bool, error) {
				if k.day < first {
					old = append(old, k.String())
				}
				return k.day < first && len(old) < chunk, nil
			}); err != nil {
				return err
			}
			for _, k := range old {
				if err := tx.KVDelete(contract.KernelSource, k); err != nil {
					return err
				}
			}
			n = len(old)
			return nil
		})
		if err != nil && !errors.Is(err, journal.ErrClosed) {
			l.log.Warn("deleting old sums of what was spent failed", "error", err)
		}
		if err != nil || n < chunk {
			return
		}
	}
}
