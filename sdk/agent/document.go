package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk/document"
)

const (
	// maxDocument is how much of a document a turn shows by itself, in bytes.
	maxDocument = 16 << 10
	// documentSender is the sender of the context that holds a document.
	documentSender = "documents"
)

// isDocument reports whether an attachment may have a text.
func isDocument(a *busv1.Attachment) bool {
	switch a.GetKind() {
	case contract.KindAudio, contract.KindVoice, contract.KindVideo, contract.KindLocation, contract.KindContact:
		return false
	}
	return a.GetBlob() != "" && !isPicture(a)
}

// readDocuments adds the beginnings of the documents that came with the turn's inputs as
// context, before its first step. All together have at most a quarter of a request.
func (t *turn) readDocuments() error {
	var all []*busv1.Attachment
	var known strings.Builder // the documents that were read before a crash
	add := func(e *busv1.Entry) (begun bool) {
		for _, a := range e.GetAttachments() {
			if isDocument(a) {
				all = append(all, a)
			}
		}
		if e.GetKind() == contract.EntryContext && e.GetSender() == documentSender {
			known.WriteString(e.GetText())
		}
		return e.GetKind() == contract.EntryAnswer
	}
	for _, r := range t.own() {
		if add(r.Entry) {
			return nil
		}
	}
	for _, e := range t.fresh {
		add(e)
	}
	left := t.room() / 4
	for _, a := range all {
		if strings.Contains(known.String(), "<"+reference(a)+">") {
			continue
		}
		text, err := t.readDocument(a, min(maxDocument, left))
		if err != nil {
			return err
		}
		left = max(0, left-len(text))
		t.fresh = append(t.fresh, &busv1.Entry{Kind: contract.EntryContext, Sender: documentSender,
			Text: "<" + reference(a) + ">\n" + text})
	}
	return nil
}

// readDocument returns the beginning of a document, or a sentence. An error ends the
// attempt.
func (t *turn) readDocument(a *busv1.Attachment, most int) (string, error) {
	digits := a.GetBlob()[:min(len(a.GetBlob()), contract.ReferenceDigits)]
	if most < minContext {
		return "There is no room for this document here: read_document reads it.", nil
	}
	text, err := t.a.options.Documents.Read(t.ctx, func(to io.Writer) error {
		_, err := t.a.kernel.GetBlob(t.ctx, a.GetBlob(), to)
		return err
	})
	switch {
	case t.ctx.Err() != nil:
		return "", context.Cause(t.ctx)
	case errors.Is(err, contract.ErrStale):
		return "", err
	case errors.Is(err, document.ErrPicture):
		return "This file is an image: show_attachment shows it.", nil
	case err != nil:
		t.a.log.Info("read a document for the model", "session", t.context.GetSession(), "file", digits, "error", err)
		return fmt.Sprintf("This document cannot be read: %v. Tell the user.", err), nil
	case len(text) > most:
		part := cutBytes(text, most)
		return part + fmt.Sprintf("\n[the first %d of %d bytes: read_document {reference: %s, from: %d} reads on]",
			len(part), len(text), digits, len(part)), nil
	}
	return text, nil
}
