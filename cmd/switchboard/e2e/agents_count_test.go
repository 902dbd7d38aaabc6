package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// listedTask is a task as the command line lists it.
type listedTask struct {
	ID, Root, Name, Requester, State, Outcome, Deliver string

	StartedAt time.Time `json:"started_at"`
}

// listedExchange is an exchange as the command line lists it.
type listedExchange struct {
	ID, Initiator, Peer, Outcome, Summary string

	Over     bool
	Messages int
	Result   string            `json:"result_session"`
	Owed     []json.RawMessage `json:"unanswered"`
}

// madeCall is a call of a tool, as stored.
type madeCall struct {
	ID, Session int
	Name        string
	Arguments   string
	Result      string
}

func (h *house) tasks() []listedTask { return list[[]listedTask](h.world, "tasks", "list", "--all") }

func (h *house) exchanges() []listedExchange {
	return list[struct{ Exchanges []listedExchange }](h.world, "links", "list", "--all").Exchanges
}

// calls are those of a tool that have succeeded.
func (h *house) calls(tool string) (all []madeCall) {
	for _, row := range h.query(`SELECT json_object('ID', id, 'Session', session, 'Name', name, 'Arguments', CAST(arguments AS TEXT), 'Result', result)
		FROM call WHERE name = ? AND state = 2 AND is_error = 0 ORDER BY id`, tool) {
		all = append(all, decoded[madeCall](row))
	}
	return all
}

// item is something taken out of an inbox.
type item struct {
	From    string
	TaskID  string `json:"task_id"`
	Outcome string
	Message string
	Left    int    `json:"uncollected_messages"`
	by      string // the call or the record
}

// key is what there is one of in all.
func (i item) key() string {
	if i.TaskID != "" {
		return i.TaskID
	}
	return i.Message
}

var (
	noteText = regexp.MustCompile(`\(\(\w+ \w+ \d+\)\)`)
	finished = regexp.MustCompile(`\*\*([^*]+)\*\* has (finished|failed)`)
)

// taken is everything that was taken out of inboxes, by agents and by people.
func (h *house) taken(tasks []listedTask) (all []item) {
	for _, tool := range []string{"tasks/receive", "tasks/check"} {
		for _, c := range h.calls(tool) {
			for _, i := range decoded[struct{ Messages []item }](c.Result).Messages {
				i.by = fmt.Sprintf("c%d", c.ID)
				all = append(all, i)
			}
		}
	}
	for _, row := range h.query(`SELECT json_object('Seq', seq, 'Key', key, 'Text', json_extract(CAST(payload AS TEXT), '$.text')) FROM event
		WHERE topic LIKE 'agent.input.%' AND json_extract(CAST(payload AS TEXT), '$.kind') = 'record' AND json_extract(CAST(payload AS TEXT), '$.text') LIKE 'The user has collected this%'`) {
		record := decoded[struct {
			Seq       int
			Key, Text string
		}](row)
		i := item{by: fmt.Sprintf("e%d", record.Seq), Message: noteText.FindString(record.Text)}
		if of := finished.FindStringSubmatch(record.Text); of != nil {
			i.Message = ""
			for _, task := range tasks {
				if task.Root == record.Key && task.Name == of[1] {
					i.TaskID = task.ID
				}
			}
		}
		if i.key() == "" {
			h.t.Errorf("somebody has collected what cannot be recognized: %s", row)
		}
		all = append(all, i)
	}
	return all
}

// rested waits until nothing is left to do.
func (h *house) rested(what string, answered ...string) {
	h.t.Helper()
	why := ""
	if !h.waitFor(func() bool {
		h.revive()
		why = h.unrest(answered)
		return why == ""
	}) {
		h.nothingWrong()
		h.t.Fatalf("in %s there was not: %s. %s\n%s", patience, what, why, h.everything())
	}
}

// calm starts a last kernel, that is not killed, and waits until it has nothing
// to do.
func (h *house) calm(answered ...string) {
	h.t.Helper()
	h.crash()
	h.gone(h.below)
	h.leeway.add(h.frozen())
	delete(h.env, "SWITCHBOARD_CRASH")
	h.then, h.below = nil, nil
	h.start()
	for _, id := range []string{"tasks", "links"} {
		h.state(h.control(), id, "active")
	}
	h.rested("rest after the last start", answered...)
}

// unrest says what is not over yet.
func (h *house) unrest(answered []string) string {
	switch left := h.pending(); {
	case !h.answeredAll(answered):
		return "not all messages are answered"
	case len(left) > 0:
		return "deliveries are under way: " + strings.Join(left, "\n")
	}
	for what, query := range map[string]string{
		"turns":                    `SELECT id, session, inputs FROM turn WHERE outcome = ''`,
		"calls":                    `SELECT id, session, name, CAST(arguments AS TEXT), state FROM call WHERE state < 2`,
		"tasks":                    `SELECT key, CAST(value AS TEXT) FROM kv WHERE owner = 'tasks' AND key LIKE 'task/%' AND json_extract(CAST(value AS TEXT), '$.state') != 'finished'`,
		"open exchanges":           `SELECT key, CAST(value AS TEXT) FROM kv WHERE owner = 'links' AND key LIKE 'open/%'`,
		"queued and running tasks": `SELECT key, CAST(value AS TEXT) FROM kv WHERE owner = 'tasks' AND (key LIKE 'queued/%' OR key LIKE 'working/%')`,
		"people who wait":          `SELECT key, CAST(value AS TEXT) FROM kv WHERE owner = 'tasks' AND key LIKE 'follow/%'`,
		"results that main is not told of, or has not collected": `SELECT key, CAST(value AS TEXT) FROM kv WHERE owner = 'tasks' AND (key LIKE 'unnamed/%' OR key LIKE 'named/%')`,
	} {
		if left := h.query(query); len(left) > 0 {
			return what + " are left: " + strings.Join(left, "\n")
		}
	}
	return ""
}

// everything is all that is known, for a failure.
func (h *house) everything() string {
	var b strings.Builder
	for _, row := range h.query(`SELECT owner, key, CAST(value AS TEXT) FROM kv WHERE owner IN ('tasks', 'links') AND key NOT LIKE 'prompt/%' AND key NOT LIKE 'result/%' ORDER BY key`) {
		b.WriteString(row + "\n")
	}
	for _, row := range h.query(`SELECT id, session, name, CAST(arguments AS TEXT), state, result FROM call ORDER BY id`) {
		b.WriteString("c" + row + "\n")
	}
	return b.String()
}

// counted checks from what is stored, and from what people and the model saw,
// that everything has ended once, and reached whom it was for once.
func (h *house) counted(answered ...string) {
	h.t.Helper()
	h.nothingWrong()
	h.repliesOf(answered)
	tasks := h.tasks()
	taken := h.taken(tasks)
	by := map[string][]item{}
	for _, i := range taken {
		by[i.key()] = append(by[i.key()], i)
	}
	for key, all := range by {
		if len(all) > 1 {
			h.t.Errorf("%s was collected %d times: %+v", key, len(all), all)
		}
	}
	h.refused()
	h.tasksEnded(tasks, by)
	h.lettersArrived(tasks, by)
	h.exchangesEnded()
	h.heardOnceEach()
	h.sawOnce()
	if left := h.query(`SELECT key, CAST(value AS TEXT) FROM kv WHERE owner = 'tasks' AND (key LIKE 'inbox/%' OR key LIKE 'order/%')`); len(left) > 0 {
		h.t.Errorf("the end has left:\n%s", strings.Join(left, "\n"))
	}
	for _, s := range list[[]*adminv1.Session](h.world, "sessions", "list", "-n", "1000") {
		if s.State != "idle" || s.Turns > 0 || s.Waiting > 0 {
			h.t.Errorf("a session is not idle: %+v", s)
		}
	}
	if h.t.Failed() {
		h.t.Log(h.everything())
	}
}

// refusals are the only errors that the tools of tasks and links may give: each
// says something that is so.
var refusals = regexp.MustCompile(`has (already )?finished|has ended|there is no task|not in the queue|is over|skipped: new message|^interrupted: |unknown whether`)

// refused checks that nothing has failed that could have been done.
func (h *house) refused() {
	h.t.Helper()
	for _, row := range h.query(`SELECT 'c' || id, session, name, CAST(arguments AS TEXT), result FROM call WHERE is_error = 1 AND (name LIKE 'tasks/%' OR name LIKE 'links/%')`) {
		if result := strings.SplitN(row, "|", 5)[4]; result != "" && !refusals.MatchString(result) {
			h.t.Errorf("a call has failed: %s", row)
		}
	}
}

// repliesOf checks that each message has one reply in its chat.
func (h *house) repliesOf(tokens []string) {
	h.t.Helper()
	for _, token := range tokens {
		var texts []string
		for _, text := range h.texts(chatOf(token)) {
			if strings.Contains(text, "Done <") {
				texts = append(texts, text)
			}
		}
		h.once("the reply to "+token, token, texts)
	}
}

// tasksEnded checks that each task has ended as it may, with one result that
// reached its requester.
func (h *house) tasksEnded(tasks []listedTask, by map[string][]item) {
	h.t.Helper()
	found := map[string]listedTask{}
	for _, task := range tasks {
		if _, twice := found[task.Name]; twice {
			h.t.Errorf("there are two tasks %s", task.Name)
		}
		found[task.Name] = task
	}
	for _, token := range h.given() {
		j := h.duties[token]
		task, known := found[j.name]
		delete(found, j.name)
		if !known {
			if !slices.Contains(j.outcomes, "removed") {
				h.t.Errorf("the task %s is lost", j.name)
			}
			continue
		}
		if task.State != "finished" || !slices.Contains(j.outcomes, task.Outcome) {
			h.t.Errorf("the task %s is %s, %s, not one of %q", j.name, task.State, task.Outcome, j.outcomes)
		}
		announced := len(h.query(`SELECT seq FROM event WHERE source = 'kernel' AND dedupe = ?`, "tasks:result:"+task.ID))
		switch collected := len(by[task.ID]); {
		case j.announce && (announced != 1 || collected != 0), !j.announce && announced != 0,
			!j.announce && task.Requester == "main" && collected != 1:
			h.t.Errorf("the result of %s (%s, for %s) was collected %d times and announced %d times", task.Name, task.Outcome,
				task.Requester, collected, announced)
		case j.announce:
			h.once("the announced result of "+task.Name, `"task_id":"`+task.ID+`"`, h.texts(chatOf(rootOf(token))))
		}
		for _, i := range by[task.ID] {
			if i.Outcome != "" && i.Outcome != task.Outcome {
				h.t.Errorf("the result of %s says %s, and it ended as %s", task.Name, i.Outcome, task.Outcome)
			}
		}
	}
	if len(found) > 0 {
		h.t.Errorf("nobody gave these tasks: %+v", found)
	}
}

var rootToken = regexp.MustCompile(`^<c\d+m\d+`)

// rootOf is the token of the message that led to a task.
func rootOf(token string) string { return rootToken.FindString(token) + ">" }

// given returns the tasks whose calls were made.
func (h *house) given() (tokens []string) {
	for _, c := range h.calls("tasks/push") {
		tokens = append(tokens, token.FindString(decoded[struct{ Prompt string }](c.Arguments).Prompt))
	}
	return tokens
}

// lettersArrived checks that each message that was sent was collected, or lay in
// the inbox of a task that ended.
func (h *house) lettersArrived(tasks []listedTask, by map[string][]item) {
	h.t.Helper()
	sent := map[string]bool{}
	lost := map[string][]string{} // by task
	for _, c := range h.calls("tasks/send") {
		a := decoded[struct{ To, Message string }](c.Arguments)
		if sent[a.Message] {
			h.t.Errorf("%s was sent twice", a.Message)
		}
		if sent[a.Message] = true; len(by[a.Message]) == 0 {
			lost[a.To] = append(lost[a.To], a.Message)
		}
	}
	for key := range by {
		if noteText.MatchString(key) && !sent[key] {
			h.t.Errorf("%s was collected, and never sent", key)
		}
	}
	if len(lost["main"]) > 0 {
		h.t.Errorf("messages to main are lost: %q", lost["main"])
	}
	for _, task := range tasks {
		if len(by[task.ID]) == 1 && !task.StartedAt.IsZero() && len(lost[task.Name]) > by[task.ID][0].Left &&
			strings.HasPrefix(by[task.ID][0].by, "c") {
			h.t.Errorf("messages to %s are lost: %q, and its result says %d", task.Name, lost[task.Name], by[task.ID][0].Left)
		}
	}
}

// exchangesEnded checks that each errand made one exchange, which has ended as it
// has to, and told one place of it once.
func (h *house) exchangesEnded() {
	h.t.Helper()
	found := map[string]listedExchange{}
	for _, x := range h.exchanges() {
		found[x.ID] = x
		if !x.Over || len(x.Owed) > 0 {
			h.t.Errorf("an exchange is not over: %+v", x)
		}
		if told := h.query(`SELECT seq FROM event WHERE source = 'kernel' AND dedupe = ?`,
			"links:"+x.ID+"/end"); len(told) != 1 {
			h.t.Errorf("of the end of %s somebody was told %d times", x.ID, len(told))
		}
	}
	begun := map[string]bool{}
	for _, c := range h.calls("links/send_agent_message") {
		id := decoded[struct{ Exchange string }](c.Result).Exchange
		kind := errand.FindStringSubmatch(c.Arguments)[1]
		want := map[string]string{"thank": "capped", "fail": "error", "sleep": "idle"}[kind]
		if want == "" {
			want = "concluded"
		}
		if x := found[id]; x.Outcome != want || begun[id] {
			h.t.Errorf("the exchange %s for %s ended as %q, not %q (begun twice: %v)", id, c.Arguments, x.Outcome, want,
				begun[id])
		}
		begun[id] = true
		delete(found, id)
		if kind == "early" {
			if told := h.query(`SELECT seq FROM event WHERE dedupe LIKE 'links:%' AND instr(CAST(payload AS TEXT), ?) > 0 AND json_extract(CAST(payload AS TEXT), '$.kind') = 'result'`,
				errand.FindString(c.Arguments)); len(told) < 2 {
				h.t.Errorf("of %s somebody was told %q", c.Arguments, told)
			}
		}
	}
	if len(found) > 0 {
		h.t.Errorf("nobody began these exchanges: %+v", found)
	}
}

// heardOnceEach checks that each input stands in the history of its session once,
// unless it was withdrawn or its task stopped before.
func (h *house) heardOnceEach() {
	h.t.Helper()
	heard := map[string]int{}
	stopped := map[string]bool{}
	c := h.control()
	for _, s := range list[[]*adminv1.Session](h.world, "sessions", "list", "-n", "1000") {
		entries, err := admin.History(h.ctx(), c, &adminv1.HistoryRequest{Session: s.Id})
		if err != nil {
			h.t.Fatal(err)
		}
		stopped[s.Id] = strings.HasPrefix(s.Key, "task:")
		for _, e := range entries {
			if e.Kind == contract.EntryInput {
				heard[e.Input]++
			}
		}
	}
	for _, row := range h.query(`SELECT json_object('ID', 'e' || e.seq, 'Key', e.key, 'Text', CAST(e.payload AS TEXT), 'Reason', coalesce(d.reason, ''))
		FROM event e LEFT JOIN delivery d ON d.seq = e.seq WHERE e.topic LIKE 'agent.input.%'`) {
		in := decoded[struct{ ID, Key, Text, Reason string }](row)
		n := heard[in.ID]
		if n > 1 || n == 0 && in.Reason != "withdrawn" && !stopped[in.Key] {
			h.t.Errorf("%s stands %d times in the history of %s: %s", in.ID, n, in.Key, row)
		}
	}
}

// sawOnce checks that the model was told of each message and each result by one
// call.
func (h *house) sawOnce() {
	h.t.Helper()
	seen := map[string]map[string]bool{}
	for _, r := range h.model.Requests() {
		for _, m := range r.Messages {
			if m.Role != "tool" {
				continue
			}
			for _, i := range decoded[struct{ Messages []item }](m.Content.Text).Messages {
				if i.key() == "" {
					continue
				}
				if seen[i.key()] == nil {
					seen[i.key()] = map[string]bool{}
				}
				seen[i.key()][m.ToolCallID] = true
			}
		}
	}
	for key, calls := range seen {
		if len(calls) > 1 {
			h.t.Errorf("the model was told of %s by the calls %v", key, calls)
		}
	}
}
