// Package storetest is the conformance suite of journal engines.
//
// Exercise checks the promises of package journal on a store in a new directory:
// atomicity and durability, also when the process is killed during commits, order,
// isolation, and the operations on each kind of row. Tests of a single engine, such as
// of a damaged file, are not included.
package storetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Open opens, or opens again, the engine's store in a directory. It must not
// register a cleanup: the suite closes the store.
type Open func(t testing.TB, dir string) journal.Store

// Exercise runs the suite. The calling test must do nothing else, because the suite runs
// that test again in a process that it kills.
func Exercise(t *testing.T, open Open) {
	if dir := os.Getenv(victimDir); dir != "" {
		beVictim(t, open, dir)
		return
	}
	for name, test := range map[string]func(*testing.T, Open){
		"survives a reopening":              testReopen,
		"survives kill -9":                  testKill,
		"reports outcomes in order":         testDoneOrder,
		"isolates members of a group":       testFailingMember,
		"undoes newest first":               testUndo,
		"keeps parts of updates apart":      testParts,
		"commits lazy updates":              testLazy,
		"refuses after close":               testClosed,
		"finishes what was submitted":       testCloseFinishes,
		"isolates views":                    testViewIsolation,
		"ends a view with its context":      testViewContext,
		"backs up":                          testBackup,
		"numbers events":                    testSeq,
		"finds events":                      testEvents,
		"remembers dedupe keys":             testDedupe,
		"keeps subscriptions":               testSubscriptions,
		"keeps deliveries":                  testDeliveries,
		"orders what is pending":            testPending,
		"filters deliveries":                testDeliveryFilter,
		"keeps many deliveries":             testManyDeliveries,
		"prunes":                            testPrune,
		"prunes behind what stays":          testPruneBehind,
		"prunes receipts of commits":        testPruneReceipts,
		"versions keys":                     testKVVersions,
		"scans keys":                        testKVScan,
		"keeps blobs":                       testBlobs,
		"keeps blobs of values":             testBlobsOfValues,
		"keeps sessions":                    testSessions,
		"shows an update its own session":   testSessionOfAnUpdate,
		"cuts history by size":              testHistory,
		"keeps turns and calls":             testTurnsAndCalls,
		"keeps conversations":               testConversations,
		"remembers receipts of commits":     testReceipts,
		"agrees with a model":               testModel,
		"keeps bytes and texts as they are": testOddContent,
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

// fixture is an open store.
type fixture struct {
	testing.TB
	journal.Store
	open Open
	dir  string
}

func start(t testing.TB, open Open) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{TB: t, Store: open(t, dir), open: open, dir: dir}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func (f *fixture) reopen() {
	f.Helper()
	if err := f.Close(); err != nil {
		f.Fatalf("closing the store: %v", err)
	}
	f.Store = f.open(f.TB, f.dir)
}

// do applies an update that must not fail.
func (f *fixture) do(apply func(tx journal.Tx)) {
	f.Helper()
	err := journal.Do(f.Context(), f.Store, func(tx journal.Tx) error {
		apply(tx)
		return nil
	})
	if err != nil {
		f.Fatalf("applying an update: %v", err)
	}
}

func (f *fixture) view(read func(r journal.Reader)) {
	f.Helper()
	err := f.View(f.Context(), func(r journal.Reader) error {
		read(r)
		return nil
	})
	if err != nil {
		f.Fatalf("reading: %v", err)
	}
}

// ok returns the value of a call that must not fail. It panics, because updates are
// applied on the engine's goroutine, which turns a panic into a failed update.
func ok[T any](v T, err error) T {
	must(err)
	return v
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (f *fixture) path(name string) string { return filepath.Join(f.dir, name) }

var epoch = time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)

// event returns an event of a topic, accepted at a time after the epoch.
func event(topic string, after time.Duration) *busv1.Event {
	return &busv1.Event{Topic: topic, Source: "test", Payload: []byte(`{}`), CreatedAtUs: epoch.Add(after).UnixMicro()}
}

func appendEvent(tx journal.Tx, topic string) int64 {
	e := event(topic, 0)
	must(tx.AppendEvent(e))
	return e.GetSeq()
}
