package slackchannel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/attachment"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

const (
	uploadTimeout = 5 * time.Minute
	// maxUpload bounds the files that are shared at once.
	maxUpload = 10
)

// fileName returns the name of a file that Slack shows.
func fileName(a contract.Attachment) string {
	if name := attachment.Name(a.Name); name != "" {
		return name
	}
	end := ""
	if all, err := mime.ExtensionsByType(a.MIME); err == nil && len(all) > 0 {
		end = all[0]
	}
	return cmp.Or(a.Kind, "file") + end
}

// progressRecord is how far a message with files got. The files of a step have their ids
// before they are shared, so a repetition can ask whether they were.
type progressRecord struct {
	Text     string   `json:"text,omitempty"`     // ts of the text, once it was sent
	Done     int      `json:"done,omitempty"`     // files that were shared
	Uploaded []string `json:"uploaded,omitempty"` // ids of those that are next
}

// sendFiles sends the text of a message, and then its files, ten at a time.
func (a *activation) sendFiles(ctx context.Context, to target, m sdk.Message, files []contract.Attachment,
	shown draftRecord,
) (sdk.Receipt, error) {
	key := "sent/" + m.ID
	v, err := a.kernel.Get(ctx, key)
	if err != nil {
		return sdk.Receipt{}, sdk.Retry(time.Second, err)
	}
	var p progressRecord
	if v.Version != 0 {
		if err := v.Decode(&p); err != nil {
			return sdk.Receipt{}, sdk.Drop(err.Error())
		}
	}
	store := func() error {
		if _, err := a.kernel.Commit(ctx, sdk.Put(key, p)); err != nil {
			return sdk.Unknown(fmt.Errorf("store how much of a message was sent: %w", err))
		}
		return nil
	}
	if p.Text == "" && (strings.TrimSpace(m.Unmarked) != "" || len(m.Actions) > 0 || shown.TS != "") {
		r, err := a.sendText(ctx, to, m, shown)
		if err != nil {
			return r, err
		}
		p.Text = r.ProviderID
		if err := store(); err != nil {
			return sdk.Receipt{}, err
		}
	}
	last := p.Text
	for p.Done < len(files) {
		batch := files[p.Done:min(p.Done+maxUpload, len(files))]
		shared := false
		switch {
		case len(p.Uploaded) == 0:
			if p.Uploaded, err = a.uploadAll(ctx, batch); err != nil {
				return a.notUploaded(ctx, to, m, files[p.Done:], err)
			}
			if err := store(); err != nil {
				return sdk.Receipt{}, err
			}
		case m.Repeat:
			if shared, err = a.isShared(ctx, to, p.Uploaded[0]); err != nil {
				return sdk.Receipt{}, err
			}
		}
		if !shared {
			if err := a.share(ctx, to, batch, p.Uploaded); errors.Is(err, errNoUpload) {
				p.Uploaded = nil
				continue
			} else if err != nil {
				return sdk.Receipt{}, err
			}
		}
		last = cmp.Or(p.Text, providerID(to.channel, p.Uploaded[0]))
		if p.Done, p.Uploaded = p.Done+len(batch), nil; p.Done < len(files) {
			if err := store(); err != nil {
				return sdk.Receipt{}, err
			}
		}
	}
	return sdk.Receipt{ProviderID: last, Effects: sdk.Effects{sdk.Delete(key)}}, nil
}

// notUploaded returns the outcome of a failed upload, of which nobody has seen anything.
func (a *activation) notUploaded(ctx context.Context, to target, m sdk.Message, files []contract.Attachment,
	err error,
) (sdk.Receipt, error) {
	var unread *httpcall.BlobError
	if errors.As(err, &unread) && errors.Is(err, contract.ErrNotFound) || isUnwanted(err) {
		return a.nameFiles(ctx, to, m, files)
	}
	kind, after := classify(err)
	if unread != nil || kind == unknown {
		kind = serverError
	}
	return sdk.Receipt{}, a.outcome(kind, after, err)
}

// nameFiles sends the names of files that cannot be sent.
func (a *activation) nameFiles(
	ctx context.Context, to target, m sdk.Message, files []contract.Attachment,
) (sdk.Receipt, error) {
	lines := make([]string, len(files))
	for i, f := range files {
		lines[i] = f.Reference()
	}
	m.ID += "/files"
	m.Unmarked, m.Actions = strings.Join(lines, "\n"), nil
	m.Text = m.Unmarked
	if m.Repeat {
		m.Text = contract.RepeatMark + m.Text
	}
	return a.sendText(ctx, to, m, draftRecord{})
}

// errEmptyFile says that Slack takes no empty files.
var errEmptyFile = errors.New("the file is empty")

// isUnwanted reports whether Slack does not take a file, for its size or at all.
func isUnwanted(err error) bool {
	if errors.Is(err, errEmptyFile) {
		return true
	}
	switch codeOf(err) {
	case "file_upload_size_restricted", "file_uploads_disabled", "file_uploads_except_images_disabled",
		"storage_limit_reached", "invalid_arguments":
		return true
	}
	status, ok := errors.AsType[slack.StatusCodeError](err)
	return ok && status.Code == 413
}

// uploadAll uploads files and returns their ids. Nobody sees them before they are shared.
func (a *activation) uploadAll(ctx context.Context, files []contract.Attachment) (ids []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	for _, f := range files {
		if f.Size == 0 {
			return nil, errEmptyFile
		}
		place, err := a.api.GetUploadURLExternalContext(ctx, slack.GetUploadURLExternalParameters{
			FileName: fileName(f), FileSize: int(f.Size),
		})
		if err != nil {
			return nil, err
		}
		if err := a.upload(ctx, place.UploadURL, f); err != nil {
			return nil, err
		}
		ids = append(ids, place.FileID)
	}
	return ids, nil
}

// upload streams a file from the kernel to Slack.
func (a *activation) upload(ctx context.Context, address string, f contract.Attachment) error {
	from, to := io.Pipe()
	read := make(chan error, 1)
	go func() {
		_, err := a.kernel.GetBlob(ctx, f.Blob, to)
		to.CloseWithError(err)
		read <- err
	}()
	err := a.api.files.UploadToURL(ctx, slack.UploadToURLParameters{
		UploadURL: address, Reader: from, Filename: fileName(f),
	})
	_ = from.CloseWithError(io.ErrClosedPipe)
	if unread := <-read; unread != nil && !errors.Is(unread, io.ErrClosedPipe) {
		return &httpcall.BlobError{Err: unread}
	}
	if err != nil {
		if _, answered := errors.AsType[slack.StatusCodeError](err); !answered {
			return &httpcall.Error{Err: err}
		}
	}
	return err
}

// errNoUpload says that Slack no longer has files that were not shared for too long.
var errNoUpload = errors.New("the uploaded file is gone")

// share shows uploaded files in a conversation.
func (a *activation) share(ctx context.Context, to target, files []contract.Attachment, ids []string) error {
	if err := a.pace.enter(ctx, posting, to.channel); err != nil {
		return err
	}
	p := slack.CompleteUploadExternalParameters{Channel: to.channel, ThreadTimestamp: to.thread}
	for i, id := range ids {
		p.Files = append(p.Files, slack.FileSummary{ID: id, Title: fileName(files[i])})
	}
	call, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	_, err := a.api.CompleteUploadExternalContext(call, p)
	if err == nil {
		return nil
	}
	if codeOf(err) == "file_not_found" {
		return errNoUpload
	}
	kind, after := classify(err)
	if kind == limited {
		a.pace.block(posting, to.channel, after)
	}
	return a.outcome(kind, after, err)
}

// isShared reports whether a file was shared in a conversation. Slack may take a moment to
// say so.
func (a *activation) isShared(ctx context.Context, to target, id string) (bool, error) {
	for i := range 2 {
		if i > 0 && !pause.For(ctx, a.set.times.settle) {
			return false, sdk.Retry(time.Second, context.Cause(ctx))
		}
		call, cancel := context.WithTimeout(ctx, httpcall.Timeout)
		f, _, _, err := a.api.GetFileInfoContext(call, id, 0, 0)
		cancel()
		if codeOf(err) == "file_not_found" {
			return false, nil
		}
		if err != nil {
			kind, after := classify(err)
			if kind == unknown || kind == refused {
				kind = serverError
			}
			return false, a.outcome(kind, after, err)
		}
		if len(f.Shares.Public[to.channel]) > 0 || len(f.Shares.Private[to.channel]) > 0 {
			return true, nil
		}
		for _, ids := range [][]string{f.Channels, f.Groups, f.IMs} {
			if slices.Contains(ids, to.channel) {
				return true, nil
			}
		}
	}
	return false, nil
}
