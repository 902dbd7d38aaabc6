package storetest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// victimDir is set in the process to be killed, to the directory of its store.
const victimDir = "JOURNALTEST_VICTIM"

const (
	victimWriters = 8
	victimUpdates = 400 // reported before the kill
)

// testKill kills a process that commits as fast as it can, and checks its store: every
// reported update is there, and none is partial.
func testKill(t *testing.T, open Open) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := t.TempDir()
	for range 3 {
		reported := killVictim(t, dir)
		store := open(t, dir)
		inspectVictim(t, store, reported)
		must(store.Close())
	}
}

func killVictim(t *testing.T, dir string) (reported [victimWriters]int64) {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), victimDir+"="+dir)
	cmd.Stderr = os.Stderr
	out := ok(cmd.StdoutPipe())
	must(cmd.Start())
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		var writer int
		var value int64
		if _, err := fmt.Sscanf(lines.Text(), "committed %d %d", &writer, &value); err != nil {
			t.Fatalf("the victim says %q", lines.Text())
		}
		reported[writer] = value
		if n == victimUpdates {
			must(cmd.Process.Kill())
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the victim was not killed: %v", err)
	}
	return reported
}

// beVictim writes related rows and reports when they are durable.
func beVictim(t *testing.T, open Open, dir string) {
	store := open(t, dir)
	out := make(chan string, 1024)
	for w := range victimWriters {
		go func() {
			for {
				var value int64
				err := journal.Do(context.Background(), store, func(tx journal.Tx) error {
					seq := appendEvent(tx, fmt.Sprintf("writer.w%d", w))
					count := int64(len(ok(tx.KVGet("x", fmt.Sprint("length", w))).Value)) + 1
					ok(tx.KVPut("x", fmt.Sprint("length", w), make([]byte, count)))
					ok(tx.KVPut("x", fmt.Sprint("newest", w), fmt.Append(nil, seq)))
					must(tx.AddDelivery(journal.Delivery{Seq: seq, Subscription: int64(w + 1), Key: "k"}))
					value = count
					return nil
				})
				if err != nil {
					out <- fmt.Sprint("failed: ", err)
					return
				}
				out <- fmt.Sprintf("committed %d %d", w, value)
			}
		}()
	}
	for line := range out {
		fmt.Println(line)
	}
}

func inspectVictim(t *testing.T, store journal.Store, reported [victimWriters]int64) {
	t.Helper()
	must(store.View(t.Context(), func(r journal.Reader) error {
		for w, least := range reported {
			events := ok(r.Events(journal.EventFilter{Topic: fmt.Sprintf("writer.w%d", w), Limit: 1 << 20}))
			count := int64(len(ok(r.KVGet("x", fmt.Sprint("length", w))).Value))
			pending := ok(r.PendingLane(int64(w+1), "k", 0, 1<<20))
			if count < least {
				t.Errorf("writer %d: update %d was reported, the store has %d", w, least, count)
			}
			if int64(len(events)) != count || int64(len(pending)) != count {
				t.Errorf("writer %d: %d updates, but %d events and %d deliveries", w, count, len(events), len(pending))
			}
			if newest := string(ok(r.KVGet("x", fmt.Sprint("newest", w))).Value); count > 0 &&
				newest != fmt.Sprint(events[0].GetSeq()) {
				t.Errorf("writer %d: its newest event is %d, the key says %s", w, events[0].GetSeq(), newest)
			}
		}
		return nil
	}))
}
