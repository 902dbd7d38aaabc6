package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

const (
	tasksQueued   = 1000
	tasksAtOnce   = 4
	pushesAtOnce  = 30  // tool calls of one answer of the model; at most 32 are executed
	pushesPerTurn = 250 // a turn has a bounded number of steps
)

// share is the cost of one task or turn: its part of the wall time, and processor time of all
// processes.
type share struct{ wall, cpu time.Duration }

func (s share) String() string {
	return fmt.Sprintf("%s, %s of CPU", milliseconds(s.wall), milliseconds(s.cpu))
}

// taskLoad compares queued tasks, four at a time, with plain turns of the same model and
// kernel, four at a time. Main is busy while tasks run, so it gets no notices. Then the same
// with an idle main, which gets each result in its own turn.
func taskLoad(b *bench) error {
	n := b.scale(tasksQueued)
	for _, idle := range []bool{false, true} {
		var wall, cpu, long []float64
		var notices []int64
		for range min(b.rounds, 3) {
			r, err := b.tasksOnce(n, idle)
			if err != nil {
				return err
			}
			fmt.Printf("  task: %s; plain turn: %s; in 4 long chats: %s\n", r.task, r.plain, r.long)
			wall = append(wall, float64(r.task.wall)/float64(r.plain.wall))
			cpu = append(cpu, float64(r.task.cpu)/float64(r.plain.cpu))
			long = append(long, float64(r.task.wall)/float64(r.long.wall))
			notices = append(notices, r.notices)
		}
		state := "at work"
		if idle {
			state = "idle"
		}
		fmt.Printf("%d tasks of a main that is %s, %d at a time, beside plain turns, wall: %s\n", n, state, tasksAtOnce,
			spread(wall, times))
		fmt.Println("the same, CPU:", spread(cpu, times))
		fmt.Println("the same beside 4 chats that grow, wall:", spread(long, times))
		fmt.Println("turns of main in which it was told of results:",
			spread(notices, func(n int64) string { return fmt.Sprint(n) }))
	}
	return nil
}

type tasksRun struct {
	task, plain, long share
	notices           int64
}

func (b *bench) tasksOnce(n int, idle bool) (r tasksRun, err error) {
	d, err := newBed()
	if err != nil {
		return r, err
	}
	defer d.close()
	s := &taskScript{bed: d, tasks: n, idle: idle, gate: make(chan struct{}), began: make(chan start, 1)}
	d.model.Handle(s.answer)
	if err := d.start(b.binary); err != nil {
		return r, err
	}
	if err := d.warm(); err != nil {
		return r, err
	}
	half := func() error {
		turns, err := visitors(d, n/2)
		r.plain.wall, r.plain.cpu = r.plain.wall+turns.wall/2, r.plain.cpu+turns.cpu/2
		return err
	}
	work := []func() error{
		half, // before and after the tasks, because the load of the machine changes
		func() (err error) { r.task, err = s.run(); r.notices = s.notices; return err },
		half,
		func() (err error) { r.long, err = fourChats(d, n); return err },
	}
	for _, part := range work {
		if err := part(); err != nil {
			return r, err
		}
	}
	return r, nil
}

// turnsPerChat keeps conversations short, because a task begins with an empty one.
const turnsPerChat = 4

// visitors measures plain turns, four at a time, in chats with at most a few earlier messages.
func visitors(d *bed, n int) (share, error) {
	chats := max(n/turnsPerChat, tasksAtOnce)
	for c := range chats {
		d.telegram.AddChat(telegramtest.Chat{ID: int64(1000 + c), Type: telegramtest.Private})
	}
	if _, err := visit(d, chats, chats); err != nil {
		return share{}, err
	}
	return visit(d, chats, n)
}

func visit(d *bed, chats, n int) (share, error) {
	before, began := d.cpu(), time.Now()
	say := func(i int) { d.say(int64(1000+i%chats), fmt.Sprint("message ", i)) }
	for i := range tasksAtOnce {
		say(i)
	}
	for i := range n {
		if _, err := d.reply(context.Background()); err != nil {
			return share{}, err
		}
		if i+tasksAtOnce < n {
			say(i + tasksAtOnce)
		}
	}
	return share{time.Since(began) / time.Duration(n), (d.cpu() - before) / time.Duration(n)}, nil
}

// fourChats measures plain turns in four growing chats.
func fourChats(d *bed, n int) (share, error) {
	rate, cpu, err := crowd(d, tasksAtOnce, n)
	if err != nil {
		return share{}, err
	}
	return share{time.Duration(float64(time.Second) / rate), cpu}, nil
}

type start struct {
	at  time.Time
	cpu time.Duration
}

// taskScript is the model of main, of its tasks and of all other chats.
type taskScript struct {
	bed   *bed
	tasks int
	idle  bool          // main ends its turn after run
	gate  chan struct{} // blocks main until all tasks are done
	began chan start    // when main called run

	mu      sync.Mutex
	pushed  int
	workers int
	notices int64
}

const (
	queueWord = "queue them"
	runWord   = "run them"
)

func (s *taskScript) answer(r openaitest.Request) openaitest.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := heard(r)
	switch {
	case strings.HasPrefix(said, "[task from "):
		s.workers++
	case strings.HasPrefix(said, "[notice from "):
		s.notices++
	case said == queueWord && s.pushed < s.tasks && (s.pushed%pushesPerTurn != 0 || len(r.Results()) == 0):
		return s.push()
	case said == runWord && len(r.Results()) == 0:
		s.began <- start{time.Now(), s.bed.cpu()}
		return openaitest.CallTool("tasks__run", map[string]int{"count": tasksAtOnce})
	case said == runWord && !s.idle:
		return openaitest.Answer{Text: "All are done.", Pieces: 1, Gate: s.gate}
	}
	return openaitest.Answer{Text: "Done.", Pieces: 1}
}

func (s *taskScript) push() (a openaitest.Answer) {
	for range min(pushesAtOnce, s.tasks-s.pushed) {
		s.pushed++
		prompt := fmt.Sprintf("Do part %d.", s.pushed)
		a.Calls = append(a.Calls, openaitest.NewCall("tasks__push", map[string]string{"prompt": prompt}))
	}
	return a
}

func (s *taskScript) done() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.workers
}

// run has main queue its tasks, which does not count, and run them. It measures from the call
// of run until the last result is in the inbox.
func (s *taskScript) run() (share, error) {
	queuing := time.Now()
	for s.queued() < s.tasks {
		s.bed.say(1, queueWord)
		if _, err := s.bed.reply(context.Background()); err != nil {
			return share{}, fmt.Errorf("queue the tasks: %w", err)
		}
	}
	fmt.Printf("  %d tasks queued in %s\n", s.tasks, time.Since(queuing).Round(time.Millisecond))
	inbox, err := s.bed.inboxes()
	if err != nil {
		return share{}, err
	}
	defer inbox.close()
	s.bed.say(1, runWord)
	began := <-s.began
	if err := until("the tasks did not all run", func() bool { return s.done() == s.tasks }); err != nil {
		return share{}, fmt.Errorf("%w: %d of %d", err, s.done(), s.tasks)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { //nolint:forbidigo // waits for a process
		n, err := inbox.count()
		if err != nil {
			return share{}, err
		}
		if n == s.tasks {
			break
		}
		if time.Now().After(deadline) {
			return share{}, fmt.Errorf("%d results of %d tasks lie in the inbox", n, s.tasks)
		}
	}
	tasks := time.Duration(s.tasks)
	took := share{time.Since(began.at) / tasks, (s.bed.cpu() - began.cpu) / tasks}
	close(s.gate)
	return took, s.bed.quiet()
}

func (s *taskScript) queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pushed
}
