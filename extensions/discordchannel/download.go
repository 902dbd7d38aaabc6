package discordchannel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk/attachment"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// fileTimes bound the time that files take.
type fileTimes struct {
	stall  time.Duration // how long a download may make no progress
	budget time.Duration // how long new messages wait for their files
	giveUp time.Duration // how long a file is tried
}

var defaultFileTimes = fileTimes{stall: 30 * time.Second, budget: time.Second, giveUp: 10 * time.Minute}

// remoteFile is a file at Discord.
type remoteFile struct {
	URL string `json:"url,omitempty"` // empty: there is nothing to download
	// For an address that has expired: the message, and the id of its file.
	Channel string `json:"channel,omitempty"`
	Message string `json:"message,omitempty"`
	ID      string `json:"id,omitempty"`
}

// Hosts of Discord's files, which the manifest allows.
var fileHosts = []string{"cdn.discordapp.com", "media.discordapp.net"}

// Kinds of attachments without a file. The kernel tells them to the person.
const (
	tooLargeFor = "file that is too large to store"
	gone        = "file that Discord no longer has"
	notReceived = "file that couldn't be downloaded from Discord"
)

// Formats of stickers.
const (
	stickerLottie = 3
	stickerGIF    = 4
)

// attachmentsOf returns the attachments of the content of a message, which may be a
// forwarded one, and their files.
func (s *session) attachmentsOf(content, m message) (all []contract.Attachment, files []remoteFile) {
	add := func(a contract.Attachment, f remoteFile) {
		a.Name = attachment.Name(a.Name)
		if f.URL != "" && !s.trusted(f.URL) {
			s.log.Warn("a file is at an unknown host; it is not downloaded", "host", host(f.URL))
			a, f = unreadable(a, notReceived), remoteFile{}
		}
		all, files = append(all, a), append(files, f)
	}
	for _, u := range content.Attachments {
		kind := contract.KindDocument
		switch family, _, _ := strings.Cut(u.ContentType, "/"); {
		case content.Flags&flagVoice != 0:
			kind = contract.KindVoice
		case family == "image", family == "audio", family == "video":
			kind = family
		}
		f := remoteFile{URL: u.URL, ID: u.ID}
		if !forwarded(m) {
			f.Channel, f.Message = m.ChannelID, m.ID
		}
		add(contract.Attachment{Kind: kind, Name: u.Filename, MIME: u.ContentType, Size: u.Size}, f)
	}
	for _, x := range content.StickerItems {
		a := contract.Attachment{Kind: contract.KindImage, Name: strings.TrimSpace("sticker " + x.Name)}
		if x.Format == stickerLottie {
			add(contract.Attachment{Kind: "animated sticker", Name: x.Name}, remoteFile{})
			continue
		}
		add(a, remoteFile{URL: s.stickerURL(x)})
	}
	if content.Poll != nil {
		add(contract.Attachment{Kind: "poll"}, remoteFile{})
	}
	return all, files
}

func (s *session) stickerURL(x sticker) string {
	base, end := "https://cdn.discordapp.com", ".png"
	if x.Format == stickerGIF {
		base, end = "https://media.discordapp.net", ".gif"
	}
	if !s.set.discord {
		base = s.set.url
	}
	return base + "/stickers/" + url.PathEscape(x.ID) + end
}

// trusted reports whether an address is one of Discord's files, or of the server that
// the configuration names.
func (a *activation) trusted(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" && slices.Contains(fileHosts, u.Host) ||
		!a.set.discord && u.Host == host(a.set.url))
}

// unreadable returns an attachment whose file cannot be had.
func unreadable(a contract.Attachment, why string) contract.Attachment {
	return contract.Attachment{Kind: why, Name: a.Name, Size: a.Size}
}

// errNoFile says that Discord will never give a file.
var errNoFile = errors.New("no such file at Discord")

// fetch downloads and stores the file of an attachment. If that can never succeed, the
// attachment says why. After an error it may succeed later.
func (a *activation) fetch(ctx context.Context, f remoteFile, at contract.Attachment) (contract.Attachment, error) {
	got, err := a.downloads.Store(ctx, a.kernel, at, func(ctx context.Context) (io.ReadCloser, error) {
		body, err := a.open(ctx, f.URL)
		if errors.Is(err, errNoFile) {
			body, err = a.openAgain(ctx, f)
		}
		return body, err
	})
	switch {
	case err == nil:
		return got, nil
	case errors.Is(err, contract.ErrTooLarge):
		a.log.Warn("a file is not stored", "error", err)
		return unreadable(at, tooLargeFor), nil
	case errors.Is(err, errNoFile):
		a.log.Warn("a file of a message cannot be downloaded", "error", a.api.redact(err))
		return unreadable(at, gone), nil
	}
	return at, err
}

// open requests a file.
func (a *activation) open(ctx context.Context, address string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoFile, err)
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := a.api.transport.RoundTrip(req)
	if err != nil {
		return nil, &httpcall.Error{Err: err}
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusGone, http.StatusUnauthorized:
		return nil, fmt.Errorf("%w: status %d", errNoFile, resp.StatusCode)
	}
	return nil, &httpcall.Error{Status: resp.StatusCode}
}

// openAgain requests a file whose address has expired: addresses are valid for a day.
func (a *activation) openAgain(ctx context.Context, f remoteFile) (io.ReadCloser, error) {
	if f.Message == "" {
		return nil, errNoFile
	}
	var m message
	err := a.api.do(ctx, request{method: http.MethodGet, path: "/channels/" + f.Channel + "/messages/" + f.Message}, &m)
	if err != nil {
		if kind, _ := classify(err); kind == refused {
			return nil, fmt.Errorf("%w: %w", errNoFile, err)
		}
		return nil, err
	}
	for _, u := range m.Attachments {
		if u.ID == f.ID && a.trusted(u.URL) {
			return a.open(ctx, u.URL)
		}
	}
	return nil, errNoFile
}

// fileName returns the name of a file that Discord shows.
func fileName(a contract.Attachment) string {
	return cmp.Or(attachment.Name(a.Name), attachment.Name(a.Kind)+extensionOf(a.MIME))
}
