//! guest-webserver
