package host

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
)

func TestRequestsAreManyAloneAndFewerBesideOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pace, flood, other := newAdmission(nil), newClient(&bus.Actor{ID: "flood"}), newClient(&bus.Actor{ID: "other"})
		run := func(c *client, n int) time.Duration {
			began := time.Now()
			for range n {
				end, err := pace.begin(t.Context(), c, kernelv1.KV_Get_FullMethodName)
				if err != nil {
					t.Fatal(err)
				}
				end()
			}
			return time.Since(began)
		}
		time.Sleep(time.Minute)
		if took := run(flood, 100_000); took != 0 {
			t.Errorf("alone it waited %s", took)
		}
		var waited time.Duration
		for range 100 {
			if took := run(other, 1); took > 0 {
				t.Errorf("the other one waited %s", took)
			}
			waited += run(flood, 100)
		}
		if waited < 7*time.Second || waited > 11*time.Second {
			t.Errorf("beside another one it waited %s for 10,000 requests", waited)
		}
	})
}

func TestReadsAtOnceAreFew(t *testing.T) {
	t.Parallel()
	pace, a := newAdmission(nil), newClient(&bus.Actor{ID: "flood"})
	var ends []func()
	for range readsAtOnce {
		end, err := pace.begin(t.Context(), a, kernelv1.KV_Get_FullMethodName)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pace.begin(ctx, a, kernelv1.KV_Get_FullMethodName); err == nil {
		t.Error("one more is worked on")
	}
	if _, err := pace.begin(t.Context(), a, kernelv1.Tools_Call_FullMethodName); err != nil {
		t.Errorf("a call that may take long: %v", err)
	}
	if _, err := pace.begin(t.Context(), newClient(&bus.Actor{ID: "other"}), kernelv1.KV_Get_FullMethodName); err != nil {
		t.Errorf("another extension: %v", err)
	}
	ends[0]()
	if _, err := pace.begin(t.Context(), a, kernelv1.KV_Get_FullMethodName); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}
