package blobs_test

import (
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/channel"
	"github.com/switchboard-run/switchboard/kernel/blobs"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// A photo that anna sent on one channel goes to others: as it is to one that sends
// images, as a document to one that sends documents only, and in words to one that sends
// no files or no large ones. The send keeps the file, and its channel reads it.
func TestAnAgentSendsAFileOfItsConversation(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		t := w.T
		s, _ := store(w)
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		others := map[string]*kerneltest.Channel{}
		for id, can := range map[string]channel.Spec{
			"images":    {Attachments: []string{contract.KindImage, contract.KindDocument}},
			"documents": {Attachments: []string{contract.KindDocument}, MaxAttachment: 5},
			"texts":     {},
			"small":     {Attachments: []string{contract.KindImage}, MaxAttachment: 4},
		} {
			others[id] = w.Channel(id)
			others[id].Change(func(c *directory.Channel) {
				c.Attachments, c.MaxAttachment = can.Attachments, can.MaxAttachment
			})
		}
		cat := put(w, s, telegram.Running(), "a cat")
		reference := contract.Attachment{Kind: contract.KindImage, Name: "cat.jpg", Blob: cat}
		telegram.Reports(contract.UserMessage{UserID: "anna", ConversationID: "anna", Text: "send this",
			Attachments: []contract.Attachment{reference}})
		turn := orchestrator.HearsNext()
		for id, want := range map[string]contract.ChannelSend{
			"images": {Text: "look", Attachments: []contract.Attachment{
				{Kind: contract.KindImage, Name: "cat.jpg", Blob: cat, Size: 5}}},
			"documents": {Text: "look", Attachments: []contract.Attachment{
				{Kind: contract.KindDocument, Name: "cat.jpg", Blob: cat, Size: 5}}},
			"texts": {Text: "look\n" + reference.Reference() + " can't be sent here."},
			"small": {Text: "look\n" + reference.Reference() + " can't be sent here."},
		} {
			result := turn.Calls(turn.Asks([2]string{"core/send_to_channel",
				`{"channel_id":"` + id + `","text":"look","attachments":["` + reference.Reference() + `"]}`})[0])
			w.Wait(2 * blobs.Hold)
			sweep(w, s)
			d := others[id].Take()
			l, err := w.Bus.Lease(others[id].Running(), d.GetToken())
			if err != nil {
				t.Fatal(err)
			}
			if text, err := read(w, s, others[id].Running(), l, cat); len(want.Attachments) > 0 && (text != "a cat" || err != nil) {
				t.Errorf("%s reads %q, %v", id, text, err)
			}
			got := others[id].Confirms(d)
			if got.Text != want.Text || len(got.Attachments) != len(want.Attachments) ||
				len(got.Attachments) > 0 && got.Attachments[0] != want.Attachments[0] {
				t.Errorf("%s sends %+v, want %+v", id, got, want)
			}
			if r, err := result(); err != nil || r.GetIsError() {
				t.Errorf("%s: %v, %v", id, r, err)
			}
		}
		for _, wrong := range []string{"ffffff", "cat.jpg", "", cat[:5]} {
			r := turn.Uses("core/send_to_channel", map[string]any{
				"channel_id": "images", "text": "look", "attachments": []string{wrong}})
			if !r.GetIsError() {
				t.Errorf("sending %q: %v", wrong, r)
			}
		}
		turn.Answers("done")
	})
}

// A file that an input names is kept by its session.
func TestASessionKeepsTheFilesOfAnInput(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		t := w.T
		s, _ := store(w)
		x := w.Extension(bus.Actor{ID: "x", Effects: []string{"session.ensure", "input"}, Blobs: true})
		hash := put(w, s, x.Running(), "drawn")
		e := kerneltest.Input("orchestrator", "k", contract.InputTask, "draw")
		orchestrator := w.Agent("orchestrator")
		x.Must("", kerneltest.Ensure("orchestrator", "k"))
		e.GetInput().Blobs = []string{hash}
		x.Must("", e)
		turn := orchestrator.HearsNext()
		l, err := w.Bus.Lease(orchestrator.Running(), turn.Delivery.GetToken())
		if err != nil {
			t.Fatal(err)
		}
		w.Wait(2 * time.Hour)
		sweep(w, s)
		if text, err := read(w, s, orchestrator.Running(), l, hash[:8]); text != "drawn" || err != nil {
			t.Errorf("the agent reads %q, %v", text, err)
		}
		turn.Answers("done")
	})
}
