package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk/picture"
)

const (
	// maxPictures is how many pictures a request has, the newest ones.
	maxPictures = 12
	// maxPictureBytes bounds them together: a request must fit into contract.MaxMessage.
	maxPictureBytes = 8 << 20
	// pictureBytes is what a picture counts for in a request's limit.
	pictureBytes = 1600 * bytesPerToken
)

// pictures are the pictures that a turn shows, by the names of their files. They are kept
// for its steps.
type pictures map[string]shown

// shown is a picture as models get it, or why they don't.
type shown struct {
	image   *extensionv1.Image
	problem string
}

// isPicture reports whether an attachment claims to be a picture.
func isPicture(a *busv1.Attachment) bool {
	return a.GetBlob() != "" && (a.GetKind() == contract.KindImage || a.GetKind() == contract.KindSticker ||
		strings.HasPrefix(a.GetMime(), "image/"))
}

// loadPictures loads the pictures of the turn's own rows: a picture is shown in its turn,
// later ones only name it.
func (t *turn) loadPictures() error {
	var names []string
	add := func(e *busv1.Entry) {
		for _, a := range e.GetAttachments() {
			if isPicture(a) {
				names = append(names, a.GetBlob())
			}
		}
		for _, c := range e.GetCalls() {
			if name := shownAgain(c); name != "" {
				names = append(names, name)
			}
		}
	}
	for _, r := range t.own() {
		add(r.Entry)
	}
	for _, e := range t.fresh {
		add(e)
	}
	if len(names) == 0 {
		t.pictures = nil
		return nil
	}
	t.pictures = t.pictures.keep(names)
	left, number := maxPictureBytes, 0
	most := min(maxPictures, max(1, t.room()/2/pictureBytes)) // the rest is for the text
	for _, name := range slices.Backward(names) {
		s, known := t.pictures[name]
		if !known && number < most {
			var err error
			if s, err = t.loadPicture(name); err != nil {
				return err
			}
		}
		if number++; number > most || len(s.image.GetData()) > left {
			s = shown{problem: "one request to a model holds only the newest pictures"}
		}
		left -= len(s.image.GetData())
		t.pictures[name] = s
	}
	return nil
}

// keep returns the pictures with these names.
func (p pictures) keep(names []string) pictures {
	kept := pictures{}
	for _, name := range names {
		if s, known := p[name]; known {
			kept[name] = s
		}
	}
	return kept
}

// bytes is what the pictures count for in a request's limit.
func (p pictures) bytes() (n int) {
	for _, s := range p {
		if s.image != nil {
			n += pictureBytes
		}
	}
	return n
}

// loadPicture reads a file and prepares it for models. An error ends the attempt.
func (t *turn) loadPicture(name string) (shown, error) {
	prepared, err := picture.Prepare(t.ctx, contract.MaxImageSide, func(to io.Writer) error {
		_, err := t.a.kernel.GetBlob(t.ctx, name, to)
		return err
	})
	switch {
	case err == nil:
		return shown{image: &extensionv1.Image{Mime: prepared.MIME, Data: prepared.Data}}, nil
	case t.ctx.Err() != nil:
		return shown{}, context.Cause(t.ctx)
	case errors.Is(err, contract.ErrStale):
		return shown{}, err
	}
	t.a.log.Info("show a picture to the model", "session", t.context.GetSession(), "file", name, "error", err)
	return shown{problem: err.Error()}, nil
}

// show adds the pictures of a row to its message. A sentence replaces one that cannot be
// shown.
func (p pictures) show(m *extensionv1.Message, e *busv1.Entry) {
	for _, a := range e.GetAttachments() {
		s, known := p[a.GetBlob()]
		switch {
		case !known:
		case s.image != nil:
			m.Images = append(m.Images, s.image)
		default:
			m.Content += "\n\n" + labelled(contract.EntryNote, "switchboard", fmt.Sprintf(
				"You cannot see %s: %s. Tell the user.", reference(a), s.problem))
		}
	}
}

// shownAgain returns the file that a call asks to see; empty: it does not.
func shownAgain(c *busv1.Call) string {
	var args struct {
		Reference string `json:"reference"`
	}
	if c.GetName() != contract.ToolShow || json.Unmarshal(c.GetArguments(), &args) != nil {
		return ""
	}
	a, _ := contract.ParseReference(args.Reference)
	return a.InSession()
}

// showAgain adds a message with the images that the calls of an answer asked to see: the
// results of calls have none.
func (p pictures) showAgain(
	out []*extensionv1.Message, e *busv1.Entry, results map[string]*busv1.Entry,
) []*extensionv1.Message {
	m := &extensionv1.Message{Role: "user"}
	var texts []string
	for _, c := range e.GetCalls() {
		name := shownAgain(c)
		s, known := p[name]
		switch r := results[c.GetCallId()]; {
		case name == "" || !known || r == nil || r.GetIsError():
		case s.image != nil:
			m.Images = append(m.Images, s.image)
			texts = append(texts, "This is "+name+", as you asked.")
		default:
			texts = append(texts, fmt.Sprintf("You cannot see %s: %s. Tell the user.", name, s.problem))
		}
	}
	if len(texts) == 0 {
		return out
	}
	m.Content = labelled(contract.EntryNote, "switchboard", strings.Join(texts, "\n"))
	return append(out, m)
}

// attachments returns the attachments of an input for its row.
func attachments(in contract.AgentInput) (all []*busv1.Attachment) {
	for _, a := range in.Attachments {
		all = append(all, &busv1.Attachment{Kind: a.Kind, Name: a.Name, Blob: a.Blob, Mime: a.MIME, Size: a.Size})
	}
	return all
}

// reference is how an attachment stands in the text.
func reference(a *busv1.Attachment) string {
	return contract.Attachment{Kind: a.GetKind(), Name: a.GetName(), Blob: a.GetBlob()}.Reference()
}
