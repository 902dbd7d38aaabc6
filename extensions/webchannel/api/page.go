package api

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
)

// Page is a part of a list.
type Page[T any] struct {
	Items []T    `json:"items" doc:"The items of this page."`
	Next  string `json:"next,omitempty" doc:"Give it as cursor to get the next page; absent on the last one."`
}

// listing is the response of a list.
type listing[T any] struct{ Body Page[T] }

// Paging is what lists take. It is exported because huma reads it.
type Paging struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"Items in a page."`
	Cursor string `query:"cursor" maxLength:"1000" doc:"The next of the page before."`
}

// at decodes the cursor into the place where the page begins; without a cursor, place is
// unchanged.
func (p Paging) at(place any) error {
	if p.Cursor == "" {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err == nil {
		err = json.Unmarshal(raw, place)
	}
	if err != nil {
		return problem(http.StatusBadRequest, "", "the cursor is not one of this list")
	}
	return nil
}

// cursor encodes the place where the next page begins.
func cursor(place any) string {
	raw, _ := json.Marshal(place) // numbers and texts
	return base64.RawURLEncoding.EncodeToString(raw)
}

// offsetPage returns the page of a list that is read as a whole.
func offsetPage[T any](all []T, p Paging) (*listing[T], error) {
	var from int
	if err := p.at(&from); err != nil {
		return nil, err
	}
	from = min(max(from, 0), len(all))
	to := min(from+p.Limit, len(all))
	out := &listing[T]{Page[T]{Items: append([]T{}, all[from:to]...)}}
	if to < len(all) {
		out.Body.Next = cursor(to)
	}
	return out, nil
}
