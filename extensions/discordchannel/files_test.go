package discordchannel

import (
	"bytes"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	dc "github.com/switchboard-run/switchboard/extensions/discordchannel/discordtest"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

var (
	png = dc.File{Name: "cat.png", MIME: "image/png", Data: []byte("\x89PNG\r\n\x1a\ncat")}
	ogg = dc.File{Name: "voice-message.ogg", MIME: "audio/ogg", Data: []byte("OggS\x00\x02\x00\x00OpusHead")}
	doc = dc.File{Name: "../a.txt", MIME: "text/plain", Data: []byte("hello")}
)

func TestFilesAreStoredBeforeTheirMessage(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	s.Inject(dc.Incoming{From: anna, Text: "look", Files: []dc.File{png, doc}})
	s.Inject(dc.Incoming{From: anna, Files: []dc.File{ogg}, Voice: true})
	s.Inject(dc.Incoming{From: anna, Sticker: "wave"})
	s.Inject(dc.Incoming{From: anna, Extra: map[string]any{"poll": map[string]any{"question": map[string]any{"text": "?"}}}})
	got := k.AwaitReceived(4)
	for i, want := range [][]contract.Attachment{
		{{Kind: contract.KindImage, Name: "cat.png", MIME: "image/png"}, {Kind: contract.KindDocument, Name: "a.txt", MIME: "text/plain"}},
		{{Kind: contract.KindVoice, Name: "voice-message.ogg", MIME: "audio/ogg"}},
		{{Kind: contract.KindImage, Name: "sticker wave", MIME: "image/png"}},
		{{Kind: "poll"}},
	} {
		if len(got[i].Attachments) != len(want) {
			t.Errorf("received %+v, want %+v", got[i].Attachments, want)
			continue
		}
		for j, a := range got[i].Attachments {
			if a.Kind != want[j].Kind || a.Name != want[j].Name || a.MIME != want[j].MIME || (a.Blob == "") != (want[j].MIME == "") {
				t.Errorf("received %+v, want %+v", a, want[j])
			}
		}
	}
}

// A slow file holds only its conversation back, and survives a restart.
func TestSlowFiles(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	s.Fail("file", 2, dc.Fault{Hang: true})
	s.Inject(dc.Incoming{From: anna, Text: "one", Files: []dc.File{png}})
	s.Say(anna, "two")
	s.Say(boris, "hello")
	if got := k.AwaitReceived(1); got[0].Text != "hello" {
		t.Errorf("received %q", texts(got))
	}
	k.WaitUntil("what waits", func() bool { return len(k.Keys("waiting/")) == 2 })
	k.Restart(New())
	s.Heal()
	got := k.AwaitReceived(3)
	if got[1].Text != "one" || len(got[1].Attachments) != 1 || got[1].Attachments[0].Blob == "" || got[2].Text != "two" {
		t.Errorf("received %+v", got)
	}
	k.WaitUntil("nothing to wait", func() bool { return len(k.Keys("waiting/")) == 0 })
}

func TestFilesThatCannotBeHad(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before func(*dc.Server)
		file   map[string]any
		want   string // its kind
	}{
		"an expired address": {(*dc.Server).Expire, nil, contract.KindImage},
		"deleted":            {(*dc.Server).LoseFiles, nil, gone},
		"at another host": {func(*dc.Server) {}, map[string]any{"attachments": []any{
			map[string]any{"id": "1", "filename": "x.png", "content_type": "image/png", "url": "http://192.0.2.1/x.png"},
		}}, notReceived},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := running(t)
			k.Stop()
			s.Inject(dc.Incoming{From: anna, Text: "look", Files: []dc.File{png}, Extra: tc.file})
			tc.before(s)
			k.Restart(New())
			if got := k.AwaitReceived(1)[0].Attachments; len(got) != 1 || got[0].Kind != tc.want {
				t.Errorf("received %+v", got)
			}
		})
	}
}

// stored returns files that the kernel has, as people sent them.
func stored(t *testing.T, s *dc.Server, k *sdktest.Kernel, files ...dc.File) []contract.Attachment {
	t.Helper()
	s.Inject(dc.Incoming{From: anna, Text: "keep", Files: files})
	return k.AwaitReceived(1)[0].Attachments
}

func TestFilesAreSent(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	kept := stored(t, s, k, png, ogg)
	m := send(dc.DM(anna), "here")
	for range 6 {
		m.Attachments = append(m.Attachments, kept...)
	}
	m.Attachments = append(m.Attachments, contract.Attachment{Kind: contract.KindLocation, Name: "52.5, 13.4"})
	m.Actions = []contract.Action{{Label: "OK", Command: "/ok"}}
	k.Send(m).MustAck(t)
	all := s.Messages(dc.DM(anna))
	if len(all) != 2 || len(all[0].Files) != 10 || len(all[1].Files) != 2 || all[0].Text != "here\n52.5, 13.4" || all[1].Text != "" {
		t.Fatalf("messages %+v", all)
	}
	if f := all[0].Files[1]; f.Name != ogg.Name || !bytes.Equal(f.Data, ogg.Data) {
		t.Errorf("file %+v", f)
	}
	if len(all[0].Buttons) != 0 || len(all[1].Buttons) != 1 {
		t.Errorf("buttons %+v", all)
	}
	if keys := k.Keys("sent/"); len(keys) != 0 {
		t.Errorf("stored %q", keys)
	}
}

// The answer to the second of two requests is lost: neither message is repeated.
func TestFilesAreSentOnce(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	kept := stored(t, s, k, png)
	m := send(dc.DM(anna), "here")
	for range 12 {
		m.Attachments = append(m.Attachments, kept...)
	}
	s.Fail("createMessage", 1, dc.Fault{})
	s.Fail("createMessage", 1, dc.Fault{Break: dc.BreakAfter})
	k.BeginSend(m)
	if err := s.WaitCalls(t.Context(), "createMessage", 3); err != nil {
		t.Fatal(err)
	}
	k.Send(send(dc.DM(anna), "next")).MustAck(t)
	if all := s.Messages(dc.DM(anna)); len(all) != 3 || len(all[1].Files) != 2 || all[2].Text != "next" {
		t.Errorf("messages %+v", all)
	}
}

// A file that Discord refuses is named.
func TestFilesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	kept := stored(t, s, k, png)
	s.Fail("createMessage", 1, dc.Fault{Status: 413, Code: 40005})
	m := send(dc.DM(anna), "here")
	m.Attachments = kept
	k.Send(m).MustAck(t)
	if got := awaitMessage(t, s, dc.DM(anna), 1); len(got.Files) != 0 || !strings.Contains(got.Text, "cat.png") {
		t.Errorf("sent %+v", got)
	}
}
