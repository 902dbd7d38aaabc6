//go:build crashpoints

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing/fstest"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/store/postgres"
)

// Crash points are in test binaries only. They kill a process with -9 exactly before or
// after a commit of the kernel, which no outside process could do:
//
//	SWITCHBOARD_CRASH         "before 7": when the 7th commit was applied, and
//	                          nothing of it is on disk; "after 7": when it is on
//	                          disk, and its outcome not yet reported;
//	                          "appended 7": when it is in the log of a
//	                          cluster, and not yet committed to the file
//	SWITCHBOARD_CRASH_FROM    topic of the event with which counting begins;
//	                          empty: the start
//	SWITCHBOARD_CRASH_VICTIM  part of the command line of the extension's process
//	                          to kill; empty: the kernel itself
//	SWITCHBOARD_CRASH_TRACE   file that gets one line for each counted commit, and
//	                          one for each killed process of an extension
//	SWITCHBOARD_SLOW_SYNC     duration of each sync of the store, such as 100ms
//	SWITCHBOARD_CRASH_OFTEN   not empty: crashed built-in extensions restart at
//	                          once, however often
//
// Only updates that write something count as commits.
func init() {
	if os.Getenv("SWITCHBOARD_CRASH_OFTEN") != "" {
		builtinManifests = restartAtOnce(manifests.FS)
	}
	if slow := os.Getenv("SWITCHBOARD_SLOW_SYNC"); slow != "" {
		wrapStore = slowSync(slow)
	}
	point, from, trace := os.Getenv("SWITCHBOARD_CRASH"), os.Getenv("SWITCHBOARD_CRASH_FROM"),
		os.Getenv("SWITCHBOARD_CRASH_TRACE")
	if point == "" && trace == "" {
		return
	}
	when, number, _ := strings.Cut(point, " ")
	n, err := strconv.Atoi(number)
	if point != "" && (err != nil || when != "before" && when != "after" && when != "appended") {
		panic("SWITCHBOARD_CRASH is " + strconv.Quote(point) + `, not "before 7", "after 7" or "appended 7"`)
	}
	wrapStore = func(s journal.Store) journal.Store {
		c := &crashStore{
			Store: s, when: when, n: n, from: from, counting: from == "",
			victim: os.Getenv("SWITCHBOARD_CRASH_VICTIM"), trace: trace,
		}
		postgres.Appended = func() {
			if c.when == "appended" && c.applied >= c.n {
				c.kill()
			}
		}
		return c
	}
}

// slowSync delays each sync of the store.
func slowSync(slow string) func(journal.Store) journal.Store {
	each, err := time.ParseDuration(slow)
	if err != nil {
		panic("SWITCHBOARD_SLOW_SYNC: " + err.Error())
	}
	return func(s journal.Store) journal.Store {
		s.(interface{ BeforeSync(f func()) }).BeforeSync(func() { time.Sleep(each) })
		return s
	}
}

// restartAtOnce returns manifests with immediate, unlimited restarts.
func restartAtOnce(from fs.FS) fs.FS {
	to := fstest.MapFS{}
	err := fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, path)
		to[path] = &fstest.MapFile{Data: append(text, "\nrestart: {backoff: 20ms, max_backoff: 20ms, max: 1000}\n"...)}
		return err
	})
	if err != nil {
		panic(err)
	}
	return to
}

// crashStore counts commits and kills at one of them. Only the writing goroutine of the
// store uses its fields.
type crashStore struct {
	journal.Store
	when     string
	n        int
	from     string
	victim   string
	trace    string
	counting bool
	applied  int
}

// Submit implements journal.Store.
func (c *crashStore) Submit(u journal.Update) {
	number, apply, done := 0, u.Apply, u.Done
	var noted *crashTx
	u.Apply = func(tx journal.Tx) error {
		noted = &crashTx{Tx: tx, from: c.from}
		if err := apply(noted); err != nil {
			return err
		}
		c.counting = c.counting || noted.begins
		if number == 0 && c.counting && len(noted.did) > 0 {
			c.applied++
			number = c.applied
		}
		if number > 0 && number == c.n && c.when == "before" {
			c.kill()
		}
		return nil
	}
	u.Done = func(err error) {
		if err == nil && number > 0 {
			c.note(number, noted)
			if number == c.n && c.when == "after" {
				c.kill()
			}
		}
		if done != nil {
			done(err)
		}
	}
	c.Store.Submit(u)
}

func (c *crashStore) note(number int, noted *crashTx) {
	c.write("%d %s", number, strings.Join(noted.did, ", "))
}

func (c *crashStore) write(format string, args ...any) {
	if c.trace == "" {
		return
	}
	f, err := os.OpenFile(c.trace, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(f, format+"\n", args...)
	_ = f.Close()
}

// kill kills the victim. It returns only if that is another process.
func (c *crashStore) kill() {
	if c.victim == "" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	out, err := exec.CommandContext(context.Background(), "ps", "-A", "-ww", "-o", "pid=,ppid=,args=").Output()
	if err != nil {
		panic(fmt.Sprint("find the process to kill: ", err))
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[1] != strconv.Itoa(os.Getpid()) || !strings.Contains(line, c.victim) {
			continue
		}
		if pid, err := strconv.Atoi(f[0]); err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			c.write("killed %d", pid)
		}
	}
}

// crashTx records the writes of an update.
type crashTx struct {
	journal.Tx
	from   string
	begins bool
	did    []string
}

func (t *crashTx) add(format string, args ...any) {
	t.did = append(t.did, fmt.Sprintf(format, args...))
}

func (t *crashTx) AppendEvent(e *busv1.Event) error {
	t.begins = t.begins || t.from != "" && e.GetTopic() == t.from
	t.add("event %s", e.GetTopic())
	return t.Tx.AppendEvent(e)
}

func (t *crashTx) PutSubscription(s *journal.Subscription) error {
	t.add("subscription %s %s", s.Extension, s.Pattern)
	return t.Tx.PutSubscription(s)
}

func (t *crashTx) DeleteSubscription(id int64) error {
	t.add("no subscription")
	return t.Tx.DeleteSubscription(id)
}

func (t *crashTx) AddDelivery(d journal.Delivery) error {
	t.add("delivery")
	return t.Tx.AddDelivery(d)
}

func (t *crashTx) UpdateDelivery(d journal.Delivery) error {
	t.add("delivery of e%d %s", d.Seq, d.State)
	return t.Tx.UpdateDelivery(d)
}

func (t *crashTx) Acknowledge(seq, subscription, startedAt, settledAt int64) error {
	t.add("delivery of e%d %s", seq, journal.Done)
	return t.Tx.Acknowledge(seq, subscription, startedAt, settledAt)
}

func (t *crashTx) KVPut(owner, key string, value []byte) (int64, error) {
	t.add("key %s/%s", owner, key)
	return t.Tx.KVPut(owner, key, value)
}

func (t *crashTx) KVDelete(owner, key string) error {
	t.add("no key %s/%s", owner, key)
	return t.Tx.KVDelete(owner, key)
}

func (t *crashTx) PutSession(s *journal.Session) error {
	t.add("session")
	return t.Tx.PutSession(s)
}

func (t *crashTx) DeleteSession(id int64) error {
	t.add("no session")
	return t.Tx.DeleteSession(id)
}

func (t *crashTx) AppendHistory(session int64, rows []*busv1.Entry) error {
	for _, r := range rows {
		t.add("row %s", r.GetKind())
	}
	return t.Tx.AppendHistory(session, rows)
}

func (t *crashTx) PutTurn(turn *journal.Turn) error {
	t.add("turn %s", turn.Outcome)
	return t.Tx.PutTurn(turn)
}

func (t *crashTx) PutCall(c *journal.Call) error {
	t.add("call %s %s", c.Name, c.State)
	return t.Tx.PutCall(c)
}

func (t *crashTx) DeleteCall(id int64) error {
	t.add("no call")
	return t.Tx.DeleteCall(id)
}

func (t *crashTx) PutConversation(v *journal.Conversation) error {
	t.add("conversation")
	return t.Tx.PutConversation(v)
}

func (t *crashTx) PutCommitReceipt(owner, id string, receipt []byte) error {
	t.add("receipt of a commit")
	return t.Tx.PutCommitReceipt(owner, id, receipt)
}
