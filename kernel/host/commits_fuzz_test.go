package host_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// FuzzCommits: whatever commits the agent of one conversation sends, with its
// own lane or with none, the kernel answers each; the other conversation stays
// as it is, and people are heard afterwards.
func FuzzCommits(f *testing.F) {
	add := func(mine bool, effects ...*busv1.Effect) {
		b, err := proto.Marshal(&kernelv1.CommitFrame{Commits: []*busv1.Commit{{Id: "c", Effects: effects}}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, mine)
	}
	note := &busv1.Entry{Kind: contract.EntryNote, Text: "note"}
	add(true, appendTo("s1", note), appendTo("s2", note))
	add(
		true,
		&busv1.Effect{
			Kind: &busv1.Effect_Append{Append: &busv1.Append{Session: "s1", ExpectedSeq: -1, Entries: []*busv1.Entry{
				{
					Kind:  contract.EntryAnswer,
					Calls: []*busv1.Call{{Name: "notes/read", CallId: "c99"}, {}},
				},
				{Kind: contract.EntrySummary, Covers: 1 << 62},
				{},
			}}},
		},
	)
	add(false, kerneltest.Ensure("chat", "task:1"), input("s2", contract.InputNotice, "obey"))
	add(true, kerneltest.CancelTurn(2, "enough"), kerneltest.Receipt("1", "boris", ""), &busv1.Effect{})
	add(
		true,
		&busv1.Effect{
			Kind: &busv1.Effect_Steer{Steer: &busv1.Steer{Session: "s1", Inputs: []string{"", "e1", "e999999999999999999"}}},
		},
	)
	add(
		false,
		kerneltest.Publish("agent.input.chat", nil),
		&busv1.Effect{Kind: &busv1.Effect_Put{Put: &busv1.Put{Key: "\x00", Version: proto.Int64(-1)}}},
	)
	f.Fuzz(func(t *testing.T, raw []byte, mine bool) {
		frame := &kernelv1.CommitFrame{}
		if proto.Unmarshal(raw, frame) != nil || len(frame.GetCommits()) == 0 {
			return
		}
		s := newRogue(t)
		boris := func() (seq int64) {
			s.w.Read(func(r journal.Reader) error {
				found, err := r.Session(journal.ParseSessionID(s.boris.GetTurn().GetSession()))
				if err == nil {
					seq = found.HistorySeq
				}
				return err
			})
			return seq
		}
		before := boris()
		for _, c := range frame.GetCommits() {
			lane := ""
			if mine {
				lane = s.anna.GetToken()
			}
			_, _ = s.agent.commit(lane, c.GetEffects()...)
		}
		if boris() != before {
			t.Error("the history of another's conversation has changed")
		}
		s.telegram.mustCommit(
			kerneltest.Publish(
				contract.TopicUserMessage,
				contract.UserMessage{UserID: "clara", ConversationID: "clara", Text: "hello"},
			),
		)
	})
}
