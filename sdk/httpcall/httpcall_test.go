package httpcall_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

func call(t *testing.T, url string) (*http.Response, []byte, error) {
	t.Helper()
	transport := httpcall.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/secret", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, answer, err := httpcall.Do(transport, req)
	return resp, answer, err
}

func TestAnAnswerIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "{}")
	}))
	defer s.Close()
	resp, answer, err := call(t, s.URL)
	if err != nil || resp.StatusCode != http.StatusTeapot || string(answer) != "{}" {
		t.Errorf("the answer is %q, %v", answer, err)
	}
}

// A call that failed says whether the server may have processed it, and no URL.
func TestWhetherARequestWasSent(t *testing.T) {
	t.Parallel()
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = nobody.Close()
	breaks := func(answer string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	for name, tc := range map[string]struct {
		url  string
		sent bool
	}{
		"no server":           {"http://" + nobody.Addr().String(), false},
		"no answer":           {breaks(""), true},
		"a part of an answer": {breaks("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, _, err := call(t, tc.url)
			if resp != nil {
				_ = resp.Body.Close()
			}
			var failed *httpcall.Error
			if !errors.As(err, &failed) || failed.Sent != tc.sent || failed.Status != 0 ||
				bytes.Contains([]byte(err.Error()), []byte("secret")) {
				t.Errorf("the error is %#v: %v", failed, err)
			}
		})
	}
}

// blobs are files by their hashes.
type blobs map[string]string

func (b blobs) GetBlob(_ context.Context, name string, to io.Writer) (sdk.Blob, error) {
	text, ok := b[name]
	if !ok {
		return sdk.Blob{}, contract.ErrNotFound
	}
	_, err := io.WriteString(to, text)
	return sdk.Blob{Hash: name, Size: int64(len(text))}, err
}

func TestAForm(t *testing.T) {
	t.Parallel()
	f := &httpcall.Form{
		From:   blobs{"h1": "cat", "h2": "a dog"},
		Fields: map[string]string{"caption": "Жук"},
		Files: []httpcall.FormFile{
			{Field: "a", Name: "cat.jpg", File: contract.Attachment{Blob: "h1", Size: 3}},
			{Field: "b", Name: "dog.jpg", File: contract.Attachment{Blob: "h2", Size: 5}},
		},
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
	if err := f.Attach(req); err != nil {
		t.Fatal(err)
	}
	again, err := req.GetBody() // a transport reads it again after a dead idle connection
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []io.Reader{req.Body, again} {
		all, err := io.ReadAll(body)
		if err != nil || int64(len(all)) != req.ContentLength {
			t.Fatalf("%d bytes, announced are %d: %v", len(all), req.ContentLength, err)
		}
		_, params, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := multipart.NewReader(bytes.NewReader(all), params["boundary"]).ReadForm(1 << 20)
		if err != nil || got.Value["caption"][0] != "Жук" || got.File["b"][0].Filename != "dog.jpg" || got.File["b"][0].Size != 5 {
			t.Errorf("the form is %+v, %v", got, err)
		}
	}
}

// A file that can't be read is not an error of the platform.
func TestAFormWithoutItsFile(t *testing.T) {
	t.Parallel()
	f := &httpcall.Form{
		From:  blobs{},
		Files: []httpcall.FormFile{{Field: "a", Name: "cat.jpg", File: contract.Attachment{Blob: "h1"}}},
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
	if err := f.Attach(req); err != nil {
		t.Fatal(err)
	}
	_, err := io.ReadAll(req.Body)
	var unread *httpcall.BlobError
	if !errors.As(err, &unread) || !errors.Is(err, contract.ErrNotFound) {
		t.Errorf("the error is %v", err)
	}
}
