package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/sdk/netguard"
)

var errRedirects = fmt.Errorf("it redirects more than %d times", maxRedirects)

func timeoutError(d time.Duration) error { return fmt.Errorf("it took longer than %s", d) }

func idleError(d time.Duration) error { return fmt.Errorf("the server sent nothing for %s", d) }

// plain returns the error of a request in plain words, without its URL.
func plain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var (
		refusal *netguard.Refusal
		unknown *net.DNSError
		invalid *tls.CertificateVerificationError
		request *url.Error
	)
	switch {
	case errors.As(err, &refusal) && refusal.Setting:
		return fmt.Errorf("%w; the owner can allow it in config.yaml: extensions.%s.config.allow_private or .ports",
			refusal, ID)
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, errRedirects):
		return errRedirects
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return fmt.Errorf("there is no host %s", unknown.Name)
	case errors.As(err, &unknown):
		return fmt.Errorf("the name %s could not be resolved: try again later", unknown.Name)
	case errors.As(err, &invalid):
		return fmt.Errorf("the certificate of the server is not valid: %w", invalid.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("the server accepts no connections")
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return errors.New("the server cannot be reached from here")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return errors.New("the server closed the connection before its answer was complete")
	case errors.As(err, &request):
		return request.Err
	}
	return err
}

// statusError returns a status that is no success in plain words.
func statusError(resp *http.Response) error {
	status := strings.TrimSpace(strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode))
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusProxyAuthRequired:
		return fmt.Errorf("the site refuses access (%s)", status)
	case code == http.StatusNotFound, code == http.StatusGone:
		return fmt.Errorf("there is no page at this address (%s)", status)
	case code == http.StatusTooManyRequests:
		return fmt.Errorf("the site allows no more requests now (%s)%s", status, tryAgain(resp))
	case code == http.StatusUnavailableForLegalReasons:
		return fmt.Errorf("the site may not show this page here (%s)", status)
	case code >= 500:
		return fmt.Errorf("the site has a problem of its own (%s)%s", status, tryAgain(resp))
	case code >= 300 && code < 400:
		return fmt.Errorf("the site redirects, and not to an address that can be followed (%s)", status)
	}
	return fmt.Errorf("the site answers with an error (%s)", status)
}

// tryAgain says when to try again, if the response does.
func tryAgain(resp *http.Response) string {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return ""
	}
	return fmt.Sprintf(": try again in %s", time.Duration(seconds)*time.Second)
}

// accepted returns the value of Accept-Language for the language of a person.
func accepted(language string) string {
	if language == "" || strings.HasPrefix(language, "en") {
		return "en, *;q=0.5"
	}
	return language + ", en;q=0.7, *;q=0.5"
}
