//! [`Files`]: a certificate in files, which somebody else replaces.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use pintle_runtime::Spawner;
use tracing::{info, warn};

use super::{Pair, PairError, Served};

/// How often the files are read. A certificate is replaced long before it ends.
const READ_EVERY: Duration = Duration::from_secs(10);

/// The files of a certificate.
#[derive(Clone, Debug)]
pub struct Files {
    /// The certificate, with those that vouch for it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The files have no certificate that can be served.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What happened.
        error: io::Error,
    },
    /// What is in them cannot be served.
    #[error("{} and {}: {error}", certificate.display(), key.display())]
    Pair {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The file with the key.
        key: PathBuf,
        /// What is wrong.
        error: PairError,
    },
}

impl Files {
    /// Reads the files and serves what is in them. Returns it. Blocks.
    ///
    /// # Errors
    /// When a file cannot be read, or what is in them cannot be served.
    pub fn serve(&self, served: &Served) -> Result<Pair, FilesError> {
        let pair = self.read()?;
        self.set(served, &pair)?;
        Ok(pair)
    }

    /// Serves what is in the files whenever they have changed. Does not end. While they cannot be served, what was served before still is:
    /// whoever replaces two files does so one after the other.
    pub async fn follow(self, served: Served, mut last: Pair, spawner: Spawner) {
        loop {
            tokio::time::sleep(READ_EVERY).await;
            let (files, before, to) = (self.clone(), last.clone(), served.clone());
            let read = move || -> Result<Option<Pair>, FilesError> {
                let pair = files.read()?;
                if pair == before {
                    return Ok(None);
                }
                files.set(&to, &pair)?;
                Ok(Some(pair))
            };
            match spawner.block(read).await {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(pair))) => {
                    info!(certificate = %self.certificate.display(), "A new certificate is served");
                    last = pair;
                }
                Ok(Err(error)) => {
                    warn!(%error, "The certificate in files cannot be served; the one before is")
                }
                Err(error) => warn!(%error, "The certificate in files was not read"),
            }
        }
    }

    fn read(&self) -> Result<Pair, FilesError> {
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|error| FilesError::Read { path: path.to_owned(), error })
        };
        Ok(Pair { certificates: read(&self.certificate)?, key: read(&self.key)? })
    }

    fn set(&self, served: &Served, pair: &Pair) -> Result<(), FilesError> {
        let (certificate, key) = (self.certificate.clone(), self.key.clone());
        served.set(pair).map_err(|error| FilesError::Pair { certificate, key, error })
    }
}
