package discordchannel

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// failureKind is the meaning of an error of a call.
type failureKind int

const (
	refused      failureKind = iota // Discord will never accept the request
	unreachable                     // the request did not reach Discord
	unknown                         // Discord may have processed the request
	serverError                     // Discord has a problem
	limited                         // too many requests
	badTokenKind                    // Discord does not know the token
)

// Codes of refusals.
const (
	codeUnknownChannel = 10003
	codeUnknownMessage = 10008
	codeMissingAccess  = 50001
	codeCannotDM       = 50007
	codeNoPermission   = 50013
	codeFileTooLarge   = 40005
	codeInvalidBody    = 50035
	codeNoHistory      = 160002 // a reply needs the permission to read the history
)

// classify returns the kind of an error; after is Discord's retry_after.
func classify(err error) (kind failureKind, after time.Duration) {
	var call *httpcall.Error
	var limit *limitedError
	var answer *refusal
	switch {
	case errors.As(err, &limit):
		return limited, limit.after
	case errors.As(err, &answer):
		if answer.status == http.StatusUnauthorized {
			return badTokenKind, 0
		}
		return refused, 0
	case errors.As(err, &call):
		switch {
		case call.Sent:
			return unknown, 0
		case call.Status != 0:
			return serverError, 0
		}
		return unreachable, 0
	}
	return unknown, 0
}

// hasCode reports whether Discord refused a call with a code.
func hasCode(err error, codes ...int) bool {
	var answer *refusal
	if !errors.As(err, &answer) {
		return false
	}
	return slices.Contains(codes, answer.Code)
}

// isAboutFiles reports whether Discord refused a message because of its files.
func isAboutFiles(err error) bool {
	var answer *refusal
	var unread *httpcall.BlobError
	return errors.As(err, &unread) || hasCode(err, codeFileTooLarge) ||
		errors.As(err, &answer) && answer.status == http.StatusRequestEntityTooLarge
}
