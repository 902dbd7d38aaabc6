package board

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// picture is what goes on at one time.
type picture struct {
	err        error // the kernel didn't answer; nothing else is set
	status     *adminv1.Status
	extensions []*adminv1.Extension
	sessions   []admin.NamedSession // that have something to do
	began      map[int64]time.Time  // turns that run, by id
	questions  []*adminv1.Question
	messages   []*busv1.Event // the newest first
	waiting    int            // pairing codes
	dead       int
}

const (
	// sessionsLooked is how many of the newest sessions are looked at.
	sessionsLooked = 100
	messagesShown  = 8
	deadCounted    = 100
)

// picture reads what goes on.
func (b *board) picture(ctx context.Context) *picture {
	p := &picture{began: map[int64]time.Time{}}
	if p.err = b.read(ctx, p); p.err != nil {
		return &picture{err: p.err}
	}
	return p
}

func (b *board) read(ctx context.Context, p *picture) (err error) {
	if p.status, err = b.Read.Status(ctx, &adminv1.StatusRequest{}); err != nil || p.status.GetDamage() != "" {
		return err
	}
	if p.extensions, err = admin.Extensions(ctx, b.Read); err != nil {
		return err
	}
	admin.NoteBusy(p.extensions, p.status.GetWaiting(), b.Now())
	all, err := admin.Sessions(ctx, b.Read, &adminv1.SessionsRequest{Limit: sessionsLooked})
	if err != nil {
		return err
	}
	var turns []int64
	for _, s := range all {
		if s.GetState() != "idle" || s.GetWaiting() > 0 {
			p.sessions, turns = append(p.sessions, s), append(turns, s.GetOpenTurns()...)
		}
	}
	if len(turns) > 0 {
		stream, err := b.Read.Turns(ctx, &adminv1.TurnsRequest{Ids: turns})
		for err == nil {
			var t *adminv1.Turn
			if t, err = stream.Recv(); err == nil {
				p.began[t.GetId()] = time.UnixMicro(t.GetStartedAtUs())
			}
		}
	}
	questions, err := b.Read.Questions(ctx, &adminv1.QuestionsRequest{})
	if err != nil {
		return err
	}
	p.questions = questions.GetQuestions()
	for _, topic := range []string{contract.TopicUserMessage, contract.TopicChannelSend + "*"} {
		found, err := admin.Events(ctx, b.Read, &adminv1.EventsRequest{Topic: topic, Limit: messagesShown})
		if err != nil {
			return err
		}
		p.messages = append(p.messages, found...)
	}
	slices.SortFunc(p.messages, func(a, b *busv1.Event) int { return cmp.Compare(b.GetSeq(), a.GetSeq()) })
	p.messages = p.messages[:min(len(p.messages), messagesShown)]
	dead, err := admin.Deliveries(ctx, b.Read, &adminv1.DeliveriesRequest{Dead: true, Limit: deadCounted})
	if err != nil {
		return err
	}
	people, err := b.Read.People(ctx, &adminv1.PeopleRequest{})
	p.dead, p.waiting = len(dead), len(people.GetWaiting())
	return err
}

// now shows what goes on; to a member, the way to what is theirs.
func (b *board) now(mux *http.ServeMux) {
	b.page(mux, boardPath, members, door.ScopeSessions, func(q *request) (*sheet, error) {
		s := &sheet{Title: q.say("Now")}
		if !q.v.May(door.ScopeAdmin, false) {
			s.Title = q.say("What is yours")
			s.Blocks = []block{{Text: []string{
				q.say("Your conversations, reminders, tasks and memories are on these pages."),
			}, Links: b.nav(q)[1:]}}
			return s, nil
		}
		s.Blocks = []block{{Live: &overlay{
			Paused: q.say("The connection is lost. This page moves again when it is back."),
			Blocks: q.pictureBlocks(b.picture(q.Context())),
		}}}
		return s, nil
	})
	mux.HandleFunc("GET /live/board", func(w http.ResponseWriter, r *http.Request) {
		q := b.request(r)
		if !owners.allows(q.v, door.ScopeAdmin, false) {
			b.refuse(w, q)
			return
		}
		b.live.serve(w, q)
	})
}

// pictureBlocks shows what goes on.
func (q *request) pictureBlocks(p *picture) []block {
	if p.err != nil {
		return []block{{Problems: []string{q.say("The kernel doesn't answer: %s", q.problem(p.err))}}}
	}
	if damage := p.status.GetDamage(); damage != "" {
		return []block{{Problems: []string{q.translate(damage)}}}
	}
	return append(q.attention(p), q.turnsBlock(p), q.waitBlock(p), q.queuesBlock(p), q.messagesBlock(p))
}

// attention is what needs the owner.
func (q *request) attention(p *picture) []block {
	b := block{Problems: q.translated(slices.Concat(p.status.GetProblems(), p.status.GetLimits()))}
	if p.waiting > 0 {
		b.Links = append(b.Links, link{Href: "/board/people", Text: words.Count(q.v.Language,
			"%d person waits for approval", "%d people wait for approval", p.waiting, p.waiting)})
	}
	if p.dead > 0 {
		b.Links = append(b.Links, link{Href: deadPath, Text: words.Count(q.v.Language,
			"%d dead letter", "%d dead letters", p.dead, p.dead)})
	}
	t := &table{Head: []string{q.say("Extension"), q.say("State"), q.say("Detail")}}
	for _, x := range p.extensions {
		fine := x.GetState() == "disabled" || (x.GetState() == "active" || x.GetState() == "inactive") &&
			slices.Contains([]string{"", "ready", "unconfigured"}, x.GetReadiness()) ||
			x.GetId() == terminal && x.GetReadiness() == "offline" // no terminal is open
		if fine && x.GetConsent().GetState() != "asks" {
			continue
		}
		state := x.GetState()
		if state == "active" {
			state = x.GetReadiness()
		}
		if x.GetConsent().GetState() == "asks" {
			state = "asks"
		}
		detail, _, _ := strings.Cut(x.GetDetail(), "\n")
		t.Rows = append(t.Rows, row{Cells: []cell{
			linked(cmp.Or(q.translate(x.GetName()), x.GetId()), extensionsPath+"/"+x.GetId()), q.state(state),
			text(dash(q.translate(detail))),
		}})
	}
	if len(t.Rows) > 0 {
		b.Table = t
	}
	if b.Table == nil && len(b.Links)+len(b.Problems) == 0 {
		return nil
	}
	b.Title = q.say("Needs attention")
	return []block{b}
}

// turnsBlock shows the agents at work.
func (q *request) turnsBlock(p *picture) block {
	t := &table{
		Head:  []string{q.say("Conversation"), q.say("Agent"), q.say("State"), q.say("Since"), q.say("Waiting")},
		Empty: q.say("No agent is at work."),
	}
	for _, s := range p.sessions {
		since := text(none)
		if turns := s.GetOpenTurns(); len(turns) > 0 {
			since = q.moment(p.began[turns[len(turns)-1]])
		}
		waiting := none
		if n := int(s.GetWaiting()); n > 0 {
			waiting = words.Count(q.v.Language, "%d message", "%d messages", n, n)
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			{Text: q.place(s), Sub: s.GetId(), Href: sessionPath(s.GetId())}, text(s.GetAgent()), q.state(s.GetState()), since,
			text(waiting),
		}})
	}
	return block{Title: q.say("At work"), Table: t}
}

// waitBlock shows what waits for people and for other agents.
func (q *request) waitBlock(p *picture) block {
	t := &table{
		Head:  []string{q.say("Who waits"), q.say("For whom"), q.say("What for"), q.say("Since")},
		Empty: q.say("Nothing waits for anyone."),
	}
	for _, x := range p.questions {
		whom := q.say("an answer on %s", x.GetChannel())
		t.Rows = append(t.Rows, row{Cells: []cell{
			text(x.GetAsker()), text(whom), linked(shorten(x.GetText(), 120), questionsPath), q.at(x.GetAskedAtUs()),
		}})
	}
	for _, s := range p.sessions {
		if s.GetState() == "waiting" {
			t.Rows = append(t.Rows, row{Cells: []cell{
				text(s.GetAgent()), text(q.say("its work elsewhere")), linked(q.place(s), sessionPath(s.GetId())),
				q.at(s.GetActiveAtUs()),
			}})
		}
	}
	return block{Title: q.say("Who waits for whom"), Table: t}
}

// queuesBlock shows the deliveries that wait.
func (q *request) queuesBlock(p *picture) block {
	t := &table{
		Head:  []string{q.say("For"), q.say("What"), q.say("Waiting"), q.say("At work"), q.say("Since")},
		Empty: q.say("No deliveries are waiting."),
	}
	waiting := slices.Clone(p.status.GetWaiting())
	slices.SortFunc(waiting, func(a, b *adminv1.Subscription) int {
		return cmp.Or(cmp.Compare(a.GetExtension(), b.GetExtension()), cmp.Compare(a.GetTopic(), b.GetTopic()))
	})
	for _, w := range waiting {
		what := cell{Text: w.GetTopic(), Code: true}
		if w.GetParked() {
			what.Sub = q.say("removed or disabled; kept for a day")
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			text(w.GetExtension()), what, text(words.Sprintf("%d", w.GetDeliveries()-w.GetInFlight())),
			text(words.Sprintf("%d", w.GetInFlight())), q.at(w.GetHandlingSinceUs()),
		}})
	}
	return block{Title: q.say("Queues"), Table: t}
}

// messagesBlock shows the last messages.
func (q *request) messagesBlock(p *picture) block {
	t := &table{
		Head:  []string{q.say("When"), q.say("Channel"), q.say("Who"), q.say("Text")},
		Empty: q.say("There are no messages yet."),
	}
	for _, e := range p.messages {
		var m struct {
			Text     string `json:"text"`
			UserName string `json:"user_name"`
			UserID   string `json:"user_id"`
			Unmarked string `json:"unmarked"`
		}
		_ = json.Unmarshal(e.GetPayload(), &m)
		channel, who := e.GetSource(), cmp.Or(m.UserName, m.UserID)
		if to, ok := strings.CutPrefix(e.GetTopic(), contract.TopicChannelSend); ok {
			channel, who = to, q.say("the assistant")
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			q.at(e.GetCreatedAtUs()), text(channel), text(who), linked(dash(shorten(m.Text, 160)), "/trace/"+e.GetId()),
		}})
	}
	return block{Title: q.say("Last messages"), Table: t}
}
