package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/switchboard-run/switchboard/contract/words"
)

const maxRedirects = 5

// download writes what an address serves to a file.
func (i *Installer) download(ctx context.Context, u *url.URL, file string, limit int64) (err error) {
	if err := checkTransport(u, i.options.Insecure); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := words.Errorf("%s has sent nothing for %s", u.Host, i.options.Stall)
	stall := time.AfterFunc(i.options.Stall, func() { cancel(stalled) })
	defer stall.Stop()
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
	}()
	r, err := i.get(ctx, u)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %w", r.Request.URL.Redacted(), words.Errorf("the server answered %s", r.Status))
	}
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	body := &watched{in: r.Body, seen: func() { stall.Reset(i.options.Stall) }}
	n, err := io.Copy(f, io.LimitReader(body, limit+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return words.Errorf("the download broke off: %w", err)
	}
	if n > limit {
		return tooLarge(limit)
	}
	return nil
}

func (i *Installer) get(ctx context.Context, u *url.URL) (*http.Response, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableCompression: true, DisableKeepAlives: true, ForceAttemptHTTP2: true,
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return words.Errorf("more than %d redirects", maxRedirects)
		}
		return checkTransport(r.URL, i.options.Insecure)
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "switchboard/"+i.options.KernelVersion)
	r, err := client.Do(request)
	if failed := new(url.Error); errors.As(err, &failed) {
		err = words.Errorf("download %s: %w", u.Redacted(), failed.Err)
	}
	return r, err
}

// watched reports each read that brought something.
type watched struct {
	in   io.Reader
	seen func()
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.in.Read(b)
	if n > 0 {
		w.seen()
	}
	return n, err
}

func tooLarge(limit int64) error {
	return words.Errorf("larger than %s, the most that is fetched",
		humanize.IBytes(uint64(limit))) //nolint:gosec // not negative
}
