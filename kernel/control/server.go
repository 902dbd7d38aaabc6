package control

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/ownuser"
	"github.com/switchboard-run/switchboard/kernel/trace"
)

// maxBody is the largest request: a payload of an event, escaped.
const maxBody = 2 * contract.MaxPayload

// Serve answers requests until ctx ends. It closes the listener.
func Serve(ctx context.Context, l net.Listener, token string, k Kernel, log hclog.Logger) error {
	server := &http.Server{
		Handler:           guard(token, routes(k)),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	stop := context.AfterFunc(ctx, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(last) != nil {
			_ = server.Close()
		}
	})
	defer stop()
	if err := server.Serve(ownuser.Listen(l, func(pid int) { log.Debug("a process connects too often", "pid", pid) })); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the command line: %w", err)
	}
	return nil
}

// connKey is of the connection in the context of a request.
type connKey struct{}

// guard refuses what does not come from the command line.
func guard(token string, next http.Handler) http.Handler {
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if name == "Origin" || name == "Cookie" || strings.HasPrefix(name, "Sec-") {
				refuse(w, fmt.Errorf("%w: web pages may not use this socket", contract.ErrDenied))
				return
			}
		}
		if r.Host != host {
			refuse(w, fmt.Errorf("%w: this is not the host %q", contract.ErrDenied, r.Host))
			return
		}
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			refuse(w, fmt.Errorf("%w: the request lacks the token of this kernel", contract.ErrStale))
			return
		}
		if c, ok := r.Context().Value(connKey{}).(*ownuser.Conn); ok {
			c.Known()
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

func routes(k Kernel) *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(r *http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v, err := f(r)
			if err != nil {
				refuse(w, err)
				return
			}
			answer(w, http.StatusOK, v)
		})
	}
	handle("GET /v1/status", func(r *http.Request) (any, error) { return k.Status(r.Context()) })
	handle("GET /v1/extensions", func(r *http.Request) (any, error) { return k.Extensions(r.Context()) })
	handle("POST /v1/extensions/{id}/restart", func(r *http.Request) (any, error) {
		return k.RestartExtension(r.Context(), r.PathValue("id"))
	})
	handle("GET /v1/channels", func(r *http.Request) (any, error) { return k.Channels(r.Context()) })
	handle("POST /v1/channels/{id}/send", func(r *http.Request) (any, error) {
		var body sendBody
		if err := read(r, &body); err != nil {
			return nil, err
		}
		return k.Send(r.Context(), r.PathValue("id"), body.Text)
	})
	handle("GET /v1/people", func(r *http.Request) (any, error) { return k.People(r.Context()) })
	handle("POST /v1/people/approve", func(r *http.Request) (any, error) {
		var body approveBody
		if err := read(r, &body); err != nil {
			return nil, err
		}
		return k.Approve(r.Context(), body.Code)
	})
	handle("POST /v1/people/revoke", func(r *http.Request) (any, error) {
		var body revokeBody
		if err := read(r, &body); err != nil {
			return nil, err
		}
		return struct{}{}, k.Revoke(r.Context(), body.Channel, body.User)
	})
	handle("GET /v1/agents", func(r *http.Request) (any, error) { return k.Agents(r.Context()) })
	handle("GET /v1/sessions", func(r *http.Request) (any, error) {
		q := r.URL.Query()
		return k.Sessions(r.Context(), SessionQuery{Agent: q.Get("agent"), Limit: number(q.Get("limit"))})
	})
	handle("GET /v1/sessions/{id}", func(r *http.Request) (any, error) { return k.Session(r.Context(), r.PathValue("id")) })
	handle("GET /v1/sessions/{id}/transcript", func(r *http.Request) (any, error) {
		return k.Transcript(r.Context(), r.PathValue("id"))
	})
	handle("DELETE /v1/sessions/{id}", func(r *http.Request) (any, error) {
		return struct{}{}, k.DeleteSession(r.Context(), r.PathValue("id"))
	})
	handle("GET /v1/usage", func(r *http.Request) (any, error) {
		return k.Usage(r.Context(), r.URL.Query().Get("by"), number(r.URL.Query().Get("days")))
	})
	handle("POST /v1/backup", func(r *http.Request) (any, error) {
		var body backupBody
		if err := read(r, &body); err != nil {
			return nil, err
		}
		if body.File != "" && !filepath.IsAbs(body.File) {
			return nil, fmt.Errorf("%w: %s depends on a directory: give the whole path", contract.ErrInvalid, body.File)
		}
		return k.Backup(r.Context(), body.File, body.Secrets)
	})
	handle("POST /v1/tools/{extension}/{tool}", func(r *http.Request) (any, error) {
		var arguments json.RawMessage
		if err := read(r, &arguments); err != nil {
			return nil, err
		}
		return k.CallTool(r.Context(), r.PathValue("extension")+"/"+r.PathValue("tool"), arguments)
	})
	handle("GET /v1/events", func(r *http.Request) (any, error) { return k.Events(r.Context(), eventQuery(r)) })
	handle("GET /v1/events/{id}", func(r *http.Request) (any, error) { return k.Event(r.Context(), r.PathValue("id")) })
	handle("GET /v1/dead", func(r *http.Request) (any, error) {
		return k.DeadLetters(r.Context(), number(r.URL.Query().Get("limit")))
	})
	handle("POST /v1/events/{id}/resubmit", func(r *http.Request) (any, error) {
		n, err := k.Resubmit(r.Context(), r.PathValue("id"))
		return resubmitted{n}, err
	})
	handle("GET /v1/trace/{id...}", func(r *http.Request) (any, error) { return k.Trace(r.Context(), r.PathValue("id")) })
	handle("POST /v1/reached", func(r *http.Request) (any, error) {
		var events []trace.Ref
		if err := read(r, &events); err != nil {
			return nil, err
		}
		return k.Reached(r.Context(), events)
	})
	mux.HandleFunc("GET /v1/follow", func(w http.ResponseWriter, r *http.Request) { follow(k, w, r) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, fmt.Errorf("%w: this kernel does not know %s %s; the command line and the kernel may be of different versions: restart the kernel", contract.ErrNotFound, r.Method, r.URL.Path))
	})
	return mux
}

// Bodies of requests and answers that are no types of their own.
type (
	sendBody    struct{ Text string }
	approveBody struct{ Code string }
	revokeBody  struct{ Channel, User string }
	resubmitted struct{ Deliveries int }
	backupBody  struct {
		File    string
		Secrets bool
	}
	failure struct {
		Code    codes.Code `json:"code"` // of gRPC
		Message string     `json:"error"`
	}
)

// line is one line of a stream: an event, or why the stream ends.
type line struct {
	Event   *Event   `json:"event,omitempty"`
	Failure *failure `json:"failure,omitempty"`
}

func follow(k Kernel, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	flush := http.NewResponseController(w)
	encoder := json.NewEncoder(w)
	err := k.Follow(r.Context(), eventQuery(r), func(e Event) error {
		if err := encoder.Encode(line{Event: &e}); err != nil {
			return err
		}
		return flush.Flush()
	})
	if err != nil && r.Context().Err() == nil {
		_ = encoder.Encode(line{Failure: &failure{contract.Code(err), err.Error()}})
	}
}

func eventQuery(r *http.Request) EventQuery {
	q := r.URL.Query()
	return EventQuery{Topic: q.Get("topic"), Limit: number(q.Get("limit"))}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

func read(r *http.Request, v any) error {
	if err := json.NewDecoder(r.Body).Decode(v); err != nil {
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return fmt.Errorf("%w: the request has more than %d bytes", contract.ErrTooLarge, large.Limit)
		}
		return fmt.Errorf("%w: the body is not the JSON that is expected: %w", contract.ErrInvalid, err)
	}
	return nil
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the other side is gone
}

func refuse(w http.ResponseWriter, err error) {
	code := contract.Code(err)
	status, known := map[codes.Code]int{
		codes.NotFound: http.StatusNotFound, codes.InvalidArgument: http.StatusBadRequest, codes.PermissionDenied: http.StatusForbidden,
		codes.Unauthenticated: http.StatusUnauthorized, codes.OutOfRange: http.StatusRequestEntityTooLarge, codes.FailedPrecondition: http.StatusServiceUnavailable,
	}[code]
	if !known {
		status = http.StatusInternalServerError
	}
	answer(w, status, failure{code, err.Error()})
}
