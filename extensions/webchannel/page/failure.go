package page

import (
	"encoding/json"
	"net/http"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/extensions/webchannel/httpstatus"
)

// Problem answers a request of a script with an error, as RFC 9457 has it.
func Problem(w http.ResponseWriter, r *http.Request, err error) {
	status := httpstatus.Of(err)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"title": http.StatusText(status), "status": status,
		"detail": words.Translate(door.From(r.Context()).Language, err.Error()),
	})
}

// Reply answers a request of a script with a value.
func Reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}
