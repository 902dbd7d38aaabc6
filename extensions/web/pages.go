package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/sdk/netguard"
)

const (
	maxRedirects = 5
	// pagesAtOnce bounds the pages that are in memory.
	pagesAtOnce = 4
)

// pages requests pages from sites.
type pages struct {
	agent  string
	set    settings
	guard  *netguard.Guard
	client http.Client
	slots  chan struct{} // one for each that is requested or parsed
}

// received is what a site sent.
type received struct {
	at   *url.URL // after redirects
	kind string   // its Content-Type
	body []byte
	cut  bool // there is more
}

func newPages(s settings, agent string) (*pages, error) {
	guard, err := netguard.New(netguard.Options{Allow: s.AllowPrivate, Ports: s.Ports})
	if err != nil {
		return nil, fmt.Errorf("extensions.%s.config.allow_private: %w", ID, err)
	}
	p := &pages{agent: agent, set: s, guard: guard, slots: make(chan struct{}, pagesAtOnce)}
	transport := guard.Transport()
	if s.proxy != nil { // it resolves the names: only addresses in URLs are checked
		transport.Proxy = http.ProxyURL(s.proxy)
		transport.DialContext = (&net.Dialer{}).DialContext
	}
	p.client.Transport = transport
	return p, nil
}

// enter waits for a place. Then the caller leaves it.
func (p *pages) enter(ctx context.Context) error {
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *pages) leave() { <-p.slots }

// get requests a page. Its errors are for models and people, or those of ctx.
func (p *pages) get(ctx context.Context, at *url.URL, language string) (received, error) {
	if err := p.guard.CheckURL(at); err != nil {
		return received{}, plain(ctx, err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, p.set.timeout, timeoutError(p.set.timeout))
	defer cancel()
	limited, stop := context.WithCancelCause(limited)
	defer stop(nil)
	idle := time.AfterFunc(p.set.idle, func() { stop(idleError(p.set.idle)) })
	defer idle.Stop()
	r, err := p.request(limited, at, language, func() { idle.Reset(p.set.idle) })
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	if err != nil {
		return r, plain(limited, err)
	}
	return r, nil
}

// request calls progress when the server has sent something.
func (p *pages) request(ctx context.Context, at *url.URL, language string, progress func()) (r received, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return r, err
	}
	req.Header.Set("User-Agent", p.agent)
	req.Header.Set("Accept", "text/html, text/markdown;q=0.9, text/plain;q=0.9, application/pdf;q=0.8, */*;q=0.7")
	req.Header.Set("Accept-Language", accepted(language))
	client := p.client
	client.CheckRedirect = func(next *http.Request, before []*http.Request) error {
		progress()
		if len(before) > maxRedirects {
			return errRedirects
		}
		next.Header.Del("Referer")
		return p.guard.CheckURL(next.URL)
	}
	resp, err := client.Do(req)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	progress()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return r, statusError(resp)
	}
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return r, fmt.Errorf("the site compresses the page in a way that was not asked for (%.20q)", encoding)
	}
	r.at, r.kind = resp.Request.URL, resp.Header.Get("Content-Type")
	r.body, err = io.ReadAll(io.LimitReader(reading{resp.Body, progress}, p.set.maxBytes+1))
	if err != nil {
		return r, err
	}
	if r.cut = int64(len(r.body)) > p.set.maxBytes; r.cut {
		r.body = r.body[:p.set.maxBytes]
		if !strings.HasPrefix(http.DetectContentType(r.body), "text/") {
			return r, fmt.Errorf("it is larger than %d MiB", p.set.maxBytes>>20)
		}
	}
	return r, nil
}

// reading is the body of a response that reports progress.
type reading struct {
	io.Reader
	progress func()
}

func (r reading) Read(into []byte) (int, error) {
	n, err := r.Reader.Read(into)
	if n > 0 {
		r.progress()
	}
	return n, err
}

// parseURL parses what a model gave as an address.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		if bad, ok := errors.AsType[*url.Error](err); ok {
			err = bad.Err
		}
		return nil, fmt.Errorf("it is not a URL: %w", err)
	}
	return u, nil
}
