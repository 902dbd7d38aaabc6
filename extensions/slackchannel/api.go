package slackchannel

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/slack-go/slack"

	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// api is the connection to the Web API. The library makes the calls; api is its HTTP
// client, which reports whether a failed call was sent.
type api struct {
	*slack.Client
	files     *slack.Client // for transfers, which are not kept in memory
	url       string
	tokens    []string
	transport *http.Transport
}

func newAPI(base, botToken, appToken string) *api {
	a := &api{url: base, tokens: []string{botToken, appToken}, transport: httpcall.NewTransport()}
	a.Client = slack.New(botToken, slack.OptionAPIURL(base), slack.OptionAppLevelToken(appToken),
		slack.OptionHTTPClient(a))
	a.files = slack.New(botToken, slack.OptionAPIURL(base),
		slack.OptionHTTPClient(&http.Client{Transport: a.transport}))
	return a
}

func (a *api) close() { a.transport.CloseIdleConnections() }

// redact returns the text of an error without the tokens.
func (a *api) redact(err error) string {
	text := err.Error()
	for _, token := range a.tokens {
		if token != "" {
			text = strings.ReplaceAll(text, token, "<token>")
		}
	}
	return text
}

// Do sends a request and reads the whole response. Its errors are of type *httpcall.Error.
func (a *api) Do(req *http.Request) (*http.Response, error) {
	resp, answer, err := httpcall.Do(a.transport, req)
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable:
		return nil, &httpcall.Error{Status: resp.StatusCode}
	case resp.StatusCode >= http.StatusInternalServerError:
		return nil, &httpcall.Error{Status: resp.StatusCode, Sent: true}
	case resp.StatusCode == http.StatusOK && !bytes.HasPrefix(bytes.TrimSpace(answer), []byte("{")):
		return nil, &httpcall.Error{Status: resp.StatusCode, Sent: true}
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, nil
}
