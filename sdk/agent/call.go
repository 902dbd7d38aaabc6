package agent

import (
	"errors"
	"fmt"
	"sync"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// maxParallel is the number of calls of one turn that may run concurrently.
const maxParallel = 8

// call runs calls concurrently. The kernel records each result with the call's
// effects. It joins a call that is already running and does not repeat one that has
// ended.
func (t *turn) call(calls []*busv1.Call) error {
	results := make([]*busv1.Entry, len(calls))
	failed := make([]error, len(calls))
	if len(calls) == 1 {
		results[0], failed[0] = t.callOne(calls[0])
	} else {
		t.callParallel(calls, results, failed)
	}
	for _, e := range results {
		if e != nil { // the kernel may have recorded concurrent calls in another order
			e.Seq = t.history.seq + 1
			t.history.add(e, t.id)
		}
	}
	return errors.Join(failed...)
}

func (t *turn) callParallel(calls []*busv1.Call, results []*busv1.Entry, failed []error) {
	var all sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i, c := range calls {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			results[i], failed[i] = t.callOne(c)
		})
	}
	all.Wait()
}

func (t *turn) callOne(c *busv1.Call) (*busv1.Entry, error) {
	r, err := t.a.kernel.CallTool(t.ctx, c.GetCallId())
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", c.GetName(), err)
	}
	t.a.called(c.GetName())
	if r.GetWaiting() > 0 {
		t.waiting.Store(true)
	}
	return &busv1.Entry{
		Kind: contract.EntryResult, CallId: c.GetCallId(), Text: r.GetContent(), IsError: r.GetIsError(),
	}, nil
}
