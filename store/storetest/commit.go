package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

var errRefused = errors.New("refused")

func testReopen(t *testing.T, open Open) {
	f := start(t, open)
	f.do(func(tx journal.Tx) {
		appendEvent(tx, "a.b")
		ok(tx.KVPut("x", "k", []byte("v")))
	})
	f.reopen()
	f.view(func(r journal.Reader) {
		if e := ok(r.Event(1)); e.GetTopic() != "a.b" || e.GetId() != "e1" || e.GetCorrelationId() != "e1" {
			t.Errorf("after reopening the event is %v", e)
		}
		if v := ok(r.KVGet("x", "k")); string(v.Value) != "v" || v.Version == 0 {
			t.Errorf("after reopening the key is %+v", v)
		}
	})
}

// testDoneOrder submits updates of every kind from one goroutine and expects the
// outcomes in that order.
func testDoneOrder(t *testing.T, open Open) {
	f := start(t, open)
	const n = 300
	var order []int
	done := make(chan struct{})
	for i := range n {
		f.Submit(journal.Update{
			Apply: func(tx journal.Tx) error {
				if i%7 == 3 {
					return errRefused
				}
				appendEvent(tx, "a.b")
				return nil
			},
			Done: func(err error) {
				if (i%7 == 3) != errors.Is(err, errRefused) {
					t.Errorf("the outcome of update %d is %v", i, err)
				}
				if order = append(order, i); i == n-1 {
					close(done)
				}
			},
			Lazy: i%5 == 2,
		})
	}
	<-done
	if !slices.IsSorted(order) || len(order) != n {
		t.Errorf("outcomes came in the order %v", order)
	}
}

// testFailingMember blocks the writer, so that later updates become one group, and
// makes members fail in every way.
func testFailingMember(t *testing.T, open Open) {
	f := start(t, open)
	release := make(chan struct{})
	f.Submit(journal.Update{Apply: func(journal.Tx) error { <-release; return nil }})
	const n = 60
	outcomes := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		f.Submit(journal.Update{
			Apply: func(tx journal.Tx) error {
				key := fmt.Sprint(i)
				ok(tx.KVPut("x", key, []byte("v")))
				seq := appendEvent(tx, "a.b")
				must(tx.AddDelivery(journal.Delivery{Seq: seq, Subscription: 1, Key: key}))
				switch i % 4 {
				case 1:
					return errRefused
				case 2:
					panic("of a member")
				}
				return nil
			},
			Done: func(err error) { outcomes[i] = err; wg.Done() },
		})
	}
	close(release)
	wg.Wait()
	f.view(func(r journal.Reader) {
		for i, err := range outcomes {
			failed := i%4 == 1 || i%4 == 2
			if failed != (err != nil) || (i%4 == 1) != errors.Is(err, errRefused) {
				t.Errorf("the outcome of member %d is %v", i, err)
			}
			if v := ok(r.KVGet("x", fmt.Sprint(i))); failed != (v.Version == 0) {
				t.Errorf("member %d: failed %t, but its key has version %d", i, failed, v.Version)
			}
		}
		if last := ok(r.LastSeq()); last != n/2 {
			t.Errorf("%d members were applied, and the last seq is %d", n/2, last)
		}
		if ds := ok(r.Deliveries(journal.DeliveryFilter{})); len(ds) != n/2 {
			t.Errorf("%d members were applied, and there are %d deliveries", n/2, len(ds))
		}
	})
}

// testUndo has a member fail between others. However often an engine applies them, it
// undoes the one applied last, it undoes the failing one before it applies the next,
// and in the end the others are applied.
func testUndo(t *testing.T, open Open) {
	f := start(t, open)
	release := make(chan struct{})
	var log []string
	f.Submit(journal.Update{Apply: func(journal.Tx) error { <-release; return nil }})
	done := make(chan struct{})
	for i := range 3 {
		f.Submit(journal.Update{
			Apply: func(tx journal.Tx) error {
				log = append(log, fmt.Sprint("apply ", i))
				ok(tx.KVPut("x", "k", nil))
				if i == 1 {
					panic("fails")
				}
				return nil
			},
			Undo: func() { log = append(log, fmt.Sprint("undo ", i)) },
			Done: func(error) {
				if i == 2 {
					close(done)
				}
			},
		})
	}
	close(release)
	<-done
	var standing []string
	for _, run := range log {
		what, member, _ := strings.Cut(run, " ")
		if what == "apply" {
			if slices.Contains(standing, "1") {
				t.Errorf("%s was applied on top of a member that had failed: %v", member, log)
			}
			standing = append(standing, member)
			continue
		}
		if n := len(standing); n == 0 || standing[n-1] != member {
			t.Fatalf("%s was undone while %v stood: %v", member, standing, log)
		}
		standing = standing[:len(standing)-1]
	}
	if want := []string{"0", "2"}; !slices.Equal(standing, want) {
		t.Errorf("in the end %v stand, want %v: %v", standing, want, log)
	}
}

// testLazy commits lazy updates together with the next one, and alone if there is none.
func testLazy(t *testing.T, open Open) {
	f := start(t, open)
	var order []string
	put := func(key string, isLazy bool, done func()) {
		f.Submit(journal.Update{
			Apply: func(tx journal.Tx) error { _, err := tx.KVPut("x", key, nil); return err },
			Done: func(err error) {
				if err != nil {
					t.Errorf("update %s failed: %v", key, err)
				}
				order = append(order, key)
				done()
			},
			Lazy: isLazy,
		})
	}
	alone := make(chan struct{})
	put("alone", true, func() { close(alone) })
	<-alone
	woken := make(chan struct{})
	put("rides", true, func() {})
	put("wakes", false, func() { close(woken) })
	<-woken
	if want := []string{"alone", "rides", "wakes"}; !slices.Equal(order, want) {
		t.Errorf("outcomes came in the order %v, want %v", order, want)
	}
}

func testClosed(t *testing.T, open Open) {
	f := start(t, open)
	must(f.Close())
	if err := journal.Do(t.Context(), f, func(journal.Tx) error { return nil }); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("an update after Close is %v, want ErrClosed", err)
	}
	if err := f.View(t.Context(), func(journal.Reader) error { return nil }); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("a view after Close is %v, want ErrClosed", err)
	}
	if err := f.Backup(t.Context(), f.path("late")); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("a backup after Close is %v, want ErrClosed", err)
	}
}

// testCloseFinishes closes during many submits: each update is either durable or
// refused, as its outcome says.
func testCloseFinishes(t *testing.T, open Open) {
	f := start(t, open)
	const n = 200
	outcomes := make([]error, n)
	var wg, begun sync.WaitGroup
	begun.Add(n / 2)
	for i := range n {
		wg.Go(func() {
			outcomes[i] = journal.Do(context.Background(), f, func(tx journal.Tx) error {
				_, err := tx.KVPut("x", fmt.Sprint(i), nil)
				return err
			})
			if i < n/2 {
				begun.Done()
			}
		})
	}
	begun.Wait()
	must(f.Close())
	wg.Wait()
	f.Store = f.open(t, f.dir)
	f.view(func(r journal.Reader) {
		for i, err := range outcomes {
			if v := ok(r.KVGet("x", fmt.Sprint(i))); (err == nil) != (v.Version != 0) ||
				err != nil && !errors.Is(err, journal.ErrClosed) {
				t.Errorf("update %d: outcome %v, version %d", i, err, v.Version)
			}
		}
	})
}

// testViewIsolation reads twice in one view with a commit between.
func testViewIsolation(t *testing.T, open Open) {
	f := start(t, open)
	f.view(func(r journal.Reader) {
		before := ok(r.LastSeq())
		f.do(func(tx journal.Tx) { appendEvent(tx, "a.b") })
		if after := ok(r.LastSeq()); after != before {
			t.Errorf("a view sees %d, then %d", before, after)
		}
		f.view(func(other journal.Reader) {
			if last := ok(other.LastSeq()); last != before+1 {
				t.Errorf("a view that began after a commit was reported sees %d, want %d", last, before+1)
			}
		})
	})
	if err := f.View(t.Context(), func(journal.Reader) error { return errRefused }); !errors.Is(err, errRefused) {
		t.Errorf("a view returns %v, want what reading returned", err)
	}
}

func testViewContext(t *testing.T, open Open) {
	f := start(t, open)
	ctx, cancel := context.WithCancel(t.Context())
	err := f.View(ctx, func(r journal.Reader) error {
		cancel()
		for {
			if _, err := r.LastSeq(); err != nil {
				return err
			}
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a view whose context ended returns %v", err)
	}
	f.view(func(r journal.Reader) { ok(r.LastSeq()) })
}

func testBackup(t *testing.T, open Open) {
	f := start(t, open)
	f.do(func(tx journal.Tx) { ok(tx.KVPut("x", "k", []byte("before"))) })
	if f.Size() <= 0 {
		t.Errorf("the size of a store with content is %d", f.Size())
	}
	path := f.path("copy")
	must(f.Backup(t.Context(), path))
	if err := f.Backup(t.Context(), path); err == nil {
		t.Error("a backup overwrites a file")
	}
	f.do(func(tx journal.Tx) { ok(tx.KVPut("x", "k", []byte("after"))) })
	f.view(func(r journal.Reader) {
		if v := ok(r.KVGet("x", "k")); string(v.Value) != "after" {
			t.Errorf("the store goes on with %q", v.Value)
		}
	})
	cancelled, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if err := f.Backup(cancelled, f.path("never")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a backup with a context that has ended is %v", err)
	}
}
