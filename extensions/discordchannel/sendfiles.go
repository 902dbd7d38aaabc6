package discordchannel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

const (
	maxFiles      = 10       // of a message
	maxUpload     = 10 << 20 // bytes of all files of a request
	uploadTimeout = 5 * time.Minute
)

// step is one request of a message with files.
type step struct {
	text  bool // it has the text
	files []contract.Attachment
}

// stepsOf returns the requests of a message. They depend on the message alone, so a
// repetition goes on where the last one ended. The text goes with the first files, if it
// does not replace a draft.
func stepsOf(files []contract.Attachment, hasDraft bool) (steps []step) {
	if hasDraft {
		steps = append(steps, step{text: true})
	}
	size := int64(0)
	for i, f := range files {
		last := len(steps) - 1
		if i == 0 || len(steps[last].files) == maxFiles || size+f.Size > maxUpload {
			steps, size = append(steps, step{text: i == 0 && !hasDraft}), 0
			last = len(steps) - 1
		}
		steps[last].files = append(steps[last].files, f)
		size += f.Size
	}
	return steps
}

// sendFiles sends a message with files, in several requests if need be. How many of them
// Discord has accepted is stored, so that none is repeated that was answered.
func (a *activation) sendFiles(ctx context.Context, to target, m sdk.Message, files []contract.Attachment, draft string,
) (sdk.Receipt, error) {
	key := "sent/" + m.ID
	v, err := a.kernel.Get(ctx, key)
	if err != nil {
		return sdk.Receipt{}, sdk.Retry(time.Second, err)
	}
	done := 0
	if v.Version != 0 {
		if err := v.Decode(&done); err != nil {
			return sdk.Receipt{}, sdk.Drop(err.Error())
		}
	}
	var r sdk.Receipt
	steps := stepsOf(files, draft != "")
	for i := min(done, len(steps)-1); i < len(steps); i++ {
		part := m
		if !steps[i].text {
			part.Text, part.Unmarked = strings.TrimSuffix(m.Text, m.Unmarked), "" // the mark, if any
			if i > done {
				part.Text = "" // what came before was answered
			}
		}
		if i < len(steps)-1 {
			part.Actions = nil
		}
		if len(steps[i].files) == 0 {
			r, err = a.sendText(ctx, to, part, draft)
		} else {
			r, err = a.sendStep(ctx, to, part, nonceOf(m, i), steps[i].files)
		}
		if err != nil {
			return sdk.Receipt{}, err
		}
		if i == len(steps)-1 {
			break
		}
		if _, err := a.kernel.Commit(ctx, sdk.Put(key, i+1)); err != nil {
			return sdk.Receipt{}, sdk.Unknown(fmt.Errorf("store how much of a message was sent: %w", err))
		}
	}
	if len(steps) > 1 {
		r.Effects = append(r.Effects, sdk.Delete(key))
	}
	return r, nil
}

// sendStep sends files with a text. Files that Discord refuses are named.
func (a *activation) sendStep(ctx context.Context, to target, m sdk.Message, nonce string, files []contract.Attachment,
) (sdk.Receipt, error) {
	f := &httpcall.Form{From: a.kernel}
	for i, file := range files {
		field := "files[" + strconv.Itoa(i) + "]"
		f.Files = append(f.Files, httpcall.FormFile{Field: field, Name: fileName(file), File: file})
	}
	r, err := a.send(ctx, to, m, nonce, f)
	if err == nil || !isAboutFiles(err) {
		return r, err
	}
	var unread *httpcall.BlobError
	if errors.As(err, &unread) && !errors.Is(err, contract.ErrNotFound) {
		return sdk.Receipt{}, sdk.Retry(serverRetry, err)
	}
	a.log.Warn("Discord refused a file", "error", a.api.redact(err))
	for _, file := range files {
		m.Text = strings.TrimSpace(m.Text + "\n" + file.Reference())
		m.Unmarked = strings.TrimSpace(m.Unmarked + "\n" + file.Reference())
	}
	return a.send(ctx, to, m, nonce, nil)
}

// payloadOf returns a message as the part of a form that its files belong to.
func payloadOf(m newMessage) (string, error) {
	if *m.Content == "" {
		m.Content = nil
	}
	payload, err := json.Marshal(m)
	return string(payload), err
}

// extensionOf returns the usual end of the name of a file of a type.
func extensionOf(kind string) string {
	if all, err := mime.ExtensionsByType(kind); err == nil && len(all) > 0 {
		return all[0]
	}
	return ""
}
