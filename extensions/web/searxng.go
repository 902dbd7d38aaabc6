package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// searxng asks a server of SearXNG by its JSON format.
type searxng struct {
	client api
	at     *url.URL // nil: not set
}

func (searxng) name() string { return searxngName }

func (s searxng) search(ctx context.Context, q query) ([]found, error) {
	if s.at == nil {
		return nil, fmt.Errorf("its address is not set (extensions.%s.config.searxng)", ID)
	}
	language := q.language
	if language == "" {
		language = "all"
	}
	var answer struct {
		Results []struct {
			Title   string `json:"title"`
			URL     string `json:"url"`
			Content string `json:"content"`
			Date    string `json:"publishedDate"`
		} `json:"results"`
		// Unresponsive has pairs: the engine that SearXNG asked, and why it did not answer.
		Unresponsive [][]string `json:"unresponsive_engines"`
	}
	resp, _, err := s.client.get( //nolint:bodyclose // httpcall.Do closes it
		ctx, s.at, "search", url.Values{
			"q": {q.text}, "format": {"json"}, "language": {language},
		}, http.Header{"Accept-Language": {accepted(q.language)}}, &answer,
	)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusForbidden:
		return nil, errors.New("the server does not answer in JSON (403 Forbidden): " +
			"its settings.yml needs `search: {formats: [html, json]}`")
	case resp.StatusCode == http.StatusTooManyRequests:
		return nil, errors.New("the server takes this for too many requests (429): " +
			"its settings.yml needs `server: {limiter: false}`, or a limiter.toml that lets this machine pass")
	case resp.StatusCode != http.StatusOK:
		return nil, statusError(resp)
	}
	results := make([]found, len(answer.Results))
	for i, r := range answer.Results {
		results[i] = found{Title: r.Title, URL: r.URL, Text: r.Content, Date: date(r.Date)}
	}
	if len(results) == 0 && len(answer.Unresponsive) > 0 {
		reasons := make([]string, len(answer.Unresponsive))
		for i, pair := range answer.Unresponsive {
			reasons[i] = snippet(strings.Join(pair, " "))
		}
		return nil, fmt.Errorf("none of the engines that it asks answered: %s", strings.Join(reasons, ", "))
	}
	return results, nil
}
