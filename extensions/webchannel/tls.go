package webchannel

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// certificates serves a certificate from files, and reads them again when they change.
func certificates(files TLS) *tls.Config {
	var mu sync.Mutex
	var read time.Time
	var current *tls.Certificate
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			mu.Lock()
			defer mu.Unlock()
			info, err := os.Stat(files.Cert)
			if err == nil && current != nil && info.ModTime().Equal(read) {
				return current, nil
			}
			if err == nil {
				var next tls.Certificate
				if next, err = tls.LoadX509KeyPair(files.Cert, files.Key); err == nil {
					current, read = &next, info.ModTime()
				}
			}
			if current == nil {
				return nil, fmt.Errorf("read the certificate of extensions.%s.config.tls: %w", ID, err)
			}
			return current, nil // an exchange that is not complete yet
		},
	}
}
