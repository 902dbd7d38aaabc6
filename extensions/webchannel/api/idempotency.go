package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
)

// A POST with an Idempotency-Key is claimed by a row of the extension's store before it is
// handled, and its response is added to the row afterwards. A repeated request gets the
// stored response. If a crash came between the two, it is handled again, under the same
// key: what it calls dedupes by that key or changes nothing the second time.
//
// Rows are kept by day, so that old ones are found without reading all.

const (
	keyHeader = "Idempotency-Key"
	keyPrefix = "api/key/"
	maxKey    = 255
	maxStored = 256 << 10 // bytes of a response; a larger one is not kept, and made again
	sweepPage = 500
)

// claim is the row of a key.
type claim struct {
	Request string          `json:"request"` // hash of method, path, query and body
	Status  int             `json:"status,omitempty"`
	Type    string          `json:"type,omitempty"`
	Body    json.RawMessage `json:"body,omitempty"`
}

func keyParameter() *huma.Param {
	longest := maxKey
	return &huma.Param{
		Name: keyHeader, In: "header", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &longest},
		Description: "Chosen by the client, unique for each thing it wants done. Repeating the request with the same " +
			"key, within a day, has no second effect.",
	}
}

// once handles each POST with a key once.
func (a *api) once(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, key := door.From(r.Context()), r.Header.Get(keyHeader)
		if r.Method != http.MethodPost || key == "" || v.User == "" || r.URL.Path == prefix+filesPath {
			next.ServeHTTP(w, r)
			return
		}
		if err := checkKey(key); err != nil {
			writeProblem(w, err)
			return
		}
		if p := a.handleOnce(w, r, next, keyID(v, key)); p != nil {
			writeProblem(w, p)
		}
	})
}

func checkKey(key string) *huma.ErrorModel {
	for _, c := range key {
		if c < 0x21 || c > 0x7e {
			return problem(http.StatusBadRequest, "", keyHeader+" may have visible ASCII characters only")
		}
	}
	if len(key) > maxKey {
		return problem(http.StatusBadRequest, "", fmt.Sprintf("%s has %d characters, the limit is %d", keyHeader, len(key),
			maxKey))
	}
	return nil
}

// keyID identifies a client's key among those of all clients.
func keyID(v door.Visitor, key string) string {
	sum := sha256.Sum256([]byte(v.User + "\x00" + v.Token + "\x00" + key))
	return hex.EncodeToString(sum[:16])
}

func (a *api) handleOnce(w http.ResponseWriter, r *http.Request, next http.Handler, id string) *huma.ErrorModel {
	ctx := r.Context()
	body, p := readBody(w, r)
	if p != nil {
		return p
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %s?%s\n", r.Method, r.URL.Path, r.URL.RawQuery)
	hash.Write(body)
	request := hex.EncodeToString(hash.Sum(nil)[:16])
	// A message is one by its own id, and its response may be a stream: only the claim counts.
	message := r.URL.Path == prefix+messagesPath
	if !message {
		if !a.begin(id) {
			return problem(http.StatusConflict, typeKeyRunning, "the first request with this key is being handled; repeat it "+
				"in a moment")
		}
		defer a.end(id)
	}
	row, at, err := a.claimed(ctx, id, request)
	switch {
	case err != nil:
		return asProblem(problemOf(err))
	case row.Request != request:
		return problem(http.StatusUnprocessableEntity, typeKeyReused,
			"this "+keyHeader+" came with another request before; choose a new one")
	case row.Status != 0:
		w.Header().Set("Content-Type", row.Type)
		w.Header().Set("Idempotency-Replayed", "true")
		w.WriteHeader(row.Status)
		_, _ = w.Write(row.Body) // the client is gone
		return nil
	case message:
		next.ServeHTTP(w, r)
		return nil
	}
	said := record{header: w.Header().Clone()}
	next.ServeHTTP(&said, r)
	if err := a.keep(ctx, at, row, &said); err != nil {
		a.Log.Error("cannot keep the response to an idempotency key: a repeated request is handled again", "error", err)
	}
	maps.Copy(w.Header(), said.header)
	w.WriteHeader(said.status)
	_, _ = said.body.WriteTo(w) // the client is gone
	return nil
}

func asProblem(err huma.StatusError) *huma.ErrorModel {
	if p, ok := errors.AsType[*huma.ErrorModel](err); ok {
		return p
	}
	return problem(err.GetStatus(), "", err.Error())
}

// readBody reads the body of a request and puts it back.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *huma.ErrorModel) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // a recorder has none
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, problem(http.StatusRequestEntityTooLarge, "", fmt.Sprintf("a request has at most %d bytes", maxBody))
	}
	if err != nil {
		return nil, problem(http.StatusBadRequest, "", fmt.Sprintf("read the request: %v", err))
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// begin reports whether no other request with the key is being handled.
func (a *api) begin(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running[id] {
		return false
	}
	a.running[id] = true
	return true
}

func (a *api) end(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.running, id)
}

func rowOf(day time.Time, id string) string {
	return keyPrefix + day.UTC().Format(time.DateOnly) + "/" + id
}

// claimed returns the row of a key and where it is; it makes one if there is none.
func (a *api) claimed(ctx context.Context, id, request string) (row claim, at string, err error) {
	now := a.Now()
	a.sweep(ctx, now)
	today := rowOf(now, id)
	for _, at := range []string{rowOf(now.AddDate(0, 0, -1), id), today} {
		v, err := a.Store.Get(ctx, at)
		if err != nil {
			return row, at, fmt.Errorf("read an idempotency key: %w", err)
		}
		if v.Version != 0 {
			return row, at, v.Decode(&row)
		}
	}
	row.Request = request
	_, err = a.Store.Commit(ctx, sdk.PutAt(today, row, 0))
	if errors.Is(err, contract.ErrConflict) { // the same message came twice at once
		var v sdk.Value
		if v, err = a.Store.Get(ctx, today); err == nil {
			err = v.Decode(&row)
		}
	}
	if err != nil {
		return row, today, fmt.Errorf("store an idempotency key: %w", err)
	}
	return row, today, nil
}

// keep stores what a request was answered with. What failed and changed nothing gives the
// key back; what failed and may have changed something is handled again when it is repeated.
func (a *api) keep(ctx context.Context, at string, row claim, said *record) error {
	ctx = context.WithoutCancel(ctx) // it is done, though the client may be gone
	switch {
	case said.status >= http.StatusInternalServerError || said.body.Len() > maxStored:
		return nil
	case said.status >= http.StatusBadRequest:
		_, err := a.Store.Commit(ctx, sdk.Delete(at))
		return err
	}
	row.Status, row.Type, row.Body = said.status, said.header.Get("Content-Type"), said.body.Bytes()
	if len(row.Body) == 0 {
		row.Body = nil
	}
	_, err := a.Store.Commit(ctx, sdk.Put(at, row))
	return err
}

// sweep deletes, once a day, the keys of the days before yesterday.
func (a *api) sweep(ctx context.Context, now time.Time) {
	yesterday := now.UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	a.mu.Lock()
	done := a.swept == yesterday
	a.swept = yesterday
	a.mu.Unlock()
	for !done {
		page, more, err := a.Store.Page(ctx, keyPrefix, "", sweepPage)
		var old []sdk.Effect
		for _, v := range page {
			if day, _, _ := strings.Cut(strings.TrimPrefix(v.Key, keyPrefix), "/"); day < yesterday {
				old = append(old, sdk.Delete(v.Key))
			}
		}
		if err == nil && len(old) > 0 {
			_, err = a.Store.Commit(ctx, old...)
		}
		if err != nil {
			a.Log.Error("cannot delete old idempotency keys; they are tried again tomorrow", "error", err)
		}
		done = err != nil || !more || len(old) < len(page)
	}
}
