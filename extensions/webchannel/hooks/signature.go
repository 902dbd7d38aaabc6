package hooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// tolerance is how old, or how far in the future, a signature with a time may be.
const tolerance = 5 * time.Minute

// sign returns the HMAC-SHA256 of parts.
func sign(secret []byte, parts ...string) []byte {
	mac := hmac.New(sha256.New, secret)
	for _, p := range parts {
		mac.Write([]byte(p))
	}
	return mac.Sum(nil)
}

// signed reports whether a signature is right: the hexadecimal HMAC of the body, also after
// sha256=, or t=<Unix seconds>,v1=<HMAC of the time, a dot and the body>. Without a secret
// nothing is right. It takes the same time whatever is wrong.
func (i *inbound) signed(header string, body []byte, now time.Time) bool {
	given := strings.TrimPrefix(strings.TrimSpace(header), "sha256=")
	want, fresh := sign(i.secret, string(body)), true
	if at, is := strings.CutPrefix(given, "t="); is {
		at, rest, _ := strings.Cut(at, ",")
		seconds, err := strconv.ParseInt(at, 10, 64)
		age := now.Sub(time.Unix(seconds, 0))
		fresh = err == nil && age < tolerance && age > -tolerance
		want = sign(i.secret, at, ".", string(body))
		given = ""
		for part := range strings.SplitSeq(rest, ",") {
			if v1, is := strings.CutPrefix(part, "v1="); is {
				given = v1
			}
		}
	}
	got, _ := hex.DecodeString(given)
	return hmac.Equal(got, want) && fresh && len(i.secret) > 0
}

// signature is the header of a webhook that is sent.
func signature(secret []byte, now time.Time, body []byte) string {
	at := strconv.FormatInt(now.Unix(), 10)
	return "t=" + at + ",v1=" + hex.EncodeToString(sign(secret, at, ".", string(body)))
}
