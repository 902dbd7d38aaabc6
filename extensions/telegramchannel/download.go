package telegramchannel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-telegram/bot"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// fileTimes bound the time that files take.
type fileTimes struct {
	stall      time.Duration // how long a download may make no progress
	budget     time.Duration // how long a poll waits for the files of its messages
	giveUp     time.Duration // how long a file is tried
	albumQuiet time.Duration // how long an album is waited for, after its last part
}

var defaultFileTimes = fileTimes{
	stall: 30 * time.Second, budget: 5 * time.Second, giveUp: 10 * time.Minute, albumQuiet: time.Second,
}

// download requests a file by the path that getFile returned.
func (a *api) download(ctx context.Context, path string) (io.ReadCloser, error) {
	if path == "" || strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("%w: the server names no file to download (is it run with --local?)", errNoFile)
	}
	u, err := url.Parse(a.url)
	if err != nil {
		return nil, &httpcall.Error{Err: err}
	}
	u = u.JoinPath("file", "bot"+a.token, path)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, &httpcall.Error{Err: err}
	}
	resp, err := a.transport.RoundTrip(req)
	if err != nil {
		return nil, &httpcall.Error{Err: err}
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return nil, fmt.Errorf("%w: status %d", errNoFile, resp.StatusCode)
	}
	return nil, &httpcall.Error{Status: resp.StatusCode}
}

// errNoFile says that Telegram will never give a file.
var errNoFile = errors.New("no such file at Telegram")

// isMaybeGone reports whether a file is gone or unavailable for now: Telegram has one text
// for both.
func isMaybeGone(err error) bool { return strings.Contains(err.Error(), "temporarily unavailable") }

// isGone reports whether Telegram refused a file for good.
func isGone(err error) bool {
	if errors.Is(err, errNoFile) || errors.Is(err, bot.ErrorNotFound) {
		return true
	}
	kind, _ := classify(err)
	return kind == refused || kind == malformed && !isMaybeGone(err)
}

// fetch downloads and stores the file of an attachment. If that can never succeed, the
// attachment says why. After an error it may succeed later.
func (a *activation) fetch(ctx context.Context, f remoteFile, at contract.Attachment) (contract.Attachment, error) {
	got, err := a.downloads.Store(ctx, a.kernel, at, func(ctx context.Context) (io.ReadCloser, error) {
		remote, err := a.api.bot.GetFile(ctx, &bot.GetFileParams{FileID: f.ID})
		if err != nil {
			return nil, err
		}
		return a.api.download(ctx, remote.FilePath)
	})
	switch {
	case err == nil:
		return got, nil
	case errors.Is(err, contract.ErrTooLarge):
		a.log.Warn("a file is not stored", "error", err)
		return unreadable(at, tooLargeFor), nil
	case strings.Contains(err.Error(), "file is too big"):
		return unreadable(at, tooLarge), nil
	case isGone(err):
		a.log.Warn("a file of a message cannot be downloaded", "error", a.api.redact(err))
		return unreadable(at, gone), nil
	}
	return at, err
}
