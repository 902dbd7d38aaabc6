package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// brave asks Brave Search.
type brave struct {
	client api
	at     *url.URL
	key    string
}

func (brave) name() string { return braveName }

func (b brave) search(ctx context.Context, q query) ([]found, error) {
	if b.key == "" {
		return nil, fmt.Errorf("its key is not set (%s in secrets.env)", BraveKey)
	}
	if strings.ContainsAny(b.key, "\r\n") {
		return nil, fmt.Errorf("%s is not a key", BraveKey)
	}
	var answer struct {
		Web struct {
			Results []struct {
				Title       string `json:"title"`
				URL         string `json:"url"`
				Description string `json:"description"`
				Date        string `json:"page_age"`
			} `json:"results"`
		} `json:"web"`
	}
	resp, body, err := b.client.get( //nolint:bodyclose // httpcall.Do closes it
		ctx, b.at, "res/v1/web/search", url.Values{
			"q": {firstWords(q.text)}, "count": {strconv.Itoa(q.count)}, "result_filter": {"web"},
		}, http.Header{"X-Subscription-Token": {b.key}}, &answer,
	)
	if err != nil {
		return nil, err
	}
	switch code := errorCode(body); {
	case resp.StatusCode == http.StatusOK:
	case strings.HasPrefix(code, "SUBSCRIPTION_TOKEN"), resp.StatusCode == http.StatusUnauthorized,
		resp.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("it refuses the key in %s", BraveKey)
	case resp.StatusCode == http.StatusTooManyRequests:
		return nil, errors.New("the requests that its plan allows are used up (429)")
	case code != "":
		return nil, fmt.Errorf("%w: %s", statusError(resp), code)
	default:
		return nil, statusError(resp)
	}
	results := make([]found, len(answer.Web.Results))
	for i, r := range answer.Web.Results {
		results[i] = found{Title: r.Title, URL: r.URL, Text: r.Description, Date: date(r.Date)}
	}
	return results, nil
}

// maxWords is the most words of a query that Brave takes.
const maxWords = 50

func firstWords(text string) string {
	words := strings.Fields(text)
	return strings.Join(words[:min(len(words), maxWords)], " ")
}

// errorCode returns the code of an error's body; empty: there is none.
func errorCode(body []byte) string {
	var answer struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	return snippet(answer.Error.Code)
}
