package telegramtest

import (
	"cmp"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// File is a file that a person or a bot sends.
type File struct {
	Name string
	MIME string // as the sender's app claims
	Data []byte
	Size int64 // as Telegram reports it; 0: that of Data
}

func (f File) size() int64 { return cmp.Or(f.Size, int64(len(f.Data))) }

// MaxDownload is the size of the largest file that a bot may download.
const MaxDownload = 20 << 20

// storedFile is a file that bots can download.
type storedFile struct {
	File
	path string
}

// store makes a file available to getFile, and returns its id.
func (s *Server) store(f File, folder string) string {
	s.fileMu.Lock()
	defer s.fileMu.Unlock()
	n := len(s.files) + 1
	id := "file" + strconv.Itoa(n)
	s.files[id] = &storedFile{File: f, path: fmt.Sprintf("%s/file_%d%s", folder, n, path.Ext(f.Name))}
	return id
}

// DeleteFile simulates that Telegram no longer has a file.
func (s *Server) DeleteFile(id string) {
	s.fileMu.Lock()
	defer s.fileMu.Unlock()
	s.files[id] = nil
}

func (s *Server) getFile(p params) (any, *apiError) {
	s.fileMu.Lock()
	defer s.fileMu.Unlock()
	f := s.files[p["file_id"]]
	switch {
	case f == nil:
		return nil, badRequest("wrong file_id or the file is temporarily unavailable")
	case f.size() > MaxDownload:
		return nil, badRequest("file is too big")
	}
	return map[string]any{
		"file_id": p["file_id"], "file_unique_id": p["file_id"], "file_size": f.size(), "file_path": f.path,
	}, nil
}

// download answers /file/bot<token>/<path>. Its faults are those of the method "file".
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	token, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/file/bot"), "/")
	call := Call{Method: "file", At: s.now()}
	fault, faulty := s.faults.take(call.Method, 0)
	s.book.called(call)
	if faulty && fault.instead() {
		s.book.answered(call, fault.Status, fault.describe())
		fault.happen(w, r)
		return
	}
	s.botMu.RLock()
	known := s.bots[token] != nil
	s.botMu.RUnlock()
	data, found := s.contents(name)
	if !known || !found {
		status, body := encode(nil, &apiError{code: http.StatusNotFound, description: "Not Found"})
		s.book.answered(call, status, "Not Found")
		write(w, status, body)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	if faulty && !fault.after(w, r, data) {
		return
	}
	_, _ = w.Write(data)
}

func (s *Server) contents(path string) ([]byte, bool) {
	s.fileMu.Lock()
	defer s.fileMu.Unlock()
	for _, f := range s.files {
		if f != nil && f.path == path {
			return f.Data, true
		}
	}
	return nil, false
}
